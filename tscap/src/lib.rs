//! Packet capture for Linux whose every timestamp can be trusted.
