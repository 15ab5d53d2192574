//! What tests and benchmarks share: namespaces joined by veth pairs, frame senders,
//! a tscap process under a deadline, readers of what it wrote, and the peers.
//!
//! Everything here waits for an event under a deadline, and undoes what it did
//! when it is dropped, so also when a test fails.

pub mod bench;
pub mod between;
pub mod brackets;
pub mod bridged;
pub mod capture;
pub mod command;
pub mod cpu_state;
pub mod cut_frames;
pub mod debian;
pub mod files;
pub mod filters;
pub mod finished;
pub mod flow;
pub mod frame;
pub mod in_process;
pub mod libpcap;
pub mod lines;
pub mod live;
pub mod made;
pub mod netns;
pub mod ntp;
pub mod old_kernel;
pub mod packet_socket;
pub mod packets;
pub mod pauses;
pub mod peers;
pub mod port;
pub mod probes;
pub mod process;
pub mod programs;
pub mod recording;
pub mod root;
pub mod send_times;
pub mod shown;
pub mod stamped_udp;
pub mod tcpdump;
pub mod terminal;
pub mod test_packets;
pub mod tun;
pub mod wait;
