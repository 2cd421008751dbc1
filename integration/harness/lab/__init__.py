"""The laboratory: pages loaded by a browser over an emulated link, directly and by contenders, side by side."""
