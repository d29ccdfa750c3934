"""Interfaces other than the dashboard: static site, report, notebooks, figures for papers, and MCP server."""
