"""Tests on a fresh machine: checks before a build, the installation of the toolchain, and failures of both."""
