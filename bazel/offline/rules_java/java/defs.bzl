"""The Java rules that are built into Bazel, under the name its own tools load them by."""

java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_package_configuration = native.java_package_configuration
java_runtime = native.java_runtime
java_test = native.java_test
java_toolchain = native.java_toolchain
