"""What the tests share: real parts, a faulty proxy, small builders."""
