"""Packages, the Helm chart, gateways and dashboards, which operators install."""
