"""What the adapter keeps, and which routes of the server it uses: contract/INVENTORY.md."""
