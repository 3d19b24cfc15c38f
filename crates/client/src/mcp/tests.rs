//! Messages, tools and headers, without a server.
