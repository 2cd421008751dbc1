"""Links as they are. Users load pages beside others, on lossy and failing links, and with a wrong `link:`."""
