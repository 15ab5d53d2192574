//! tscap from Wireshark: its extcap interfaces, sshdump, and the columns of the Lua plugin,
//! by tshark and dumpcap as a user who is not root. Needs root, to make namespaces and a copy
//! of the program with file capabilities.

mod capturing;
mod columns;
mod documents;
mod listing;
mod remote;
mod user;
