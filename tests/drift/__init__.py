"""Has another server of the second API drifted from the one that the adapter was measured on?"""
