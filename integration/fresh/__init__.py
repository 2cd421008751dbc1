"""What a fresh machine meets: checks before a build, the installation of the toolchain, and failures of both."""
