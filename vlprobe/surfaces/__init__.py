"""All interfaces except the dashboard: static site, report, notebooks, figures for papers, and an MCP server."""
