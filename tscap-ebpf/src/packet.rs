//! IP packets that come without a header of the link layer.

use aya_ebpf::check_bounds_signed;
use tscap_common::key::MOST_BYTES;

/// Length of the Ethernet header that is put before a packet.
pub const HEADER: u64 = 14;
/// Length of the shortest packet with it.
pub const LEAST: u64 = HEADER + 20;

/// EtherTypes as they lie in memory.
const IPV4: u16 = 0x0800_u16.to_be();
const IPV6: u16 = 0x86dd_u16.to_be();

/// Has `load` write a packet, of which `len` bytes with a header before it are wanted, and puts
/// the header there: without addresses, of the kind that the packet's first byte tells.
///
/// # Safety
/// `to` must be aligned to 4 and have room for `len` bytes.
#[inline(always)]
pub unsafe fn load_behind_header(
    to: *mut u8,
    len: u32,
    load: impl FnOnce(*mut u8, u32) -> bool,
) -> bool {
    let len = i64::from(len) - HEADER as i64;
    if !check_bounds_signed(len, 1, i64::from(MOST_BYTES)) {
        return false;
    }
    unsafe {
        let packet = to.add(HEADER as usize);
        if !load(packet, len as u32) {
            return false;
        }
        let ethertype = if *packet >> 4 == 6 { IPV6 } else { IPV4 };
        let words = to.cast::<u32>();
        words.write(0);
        words.add(1).write(0);
        words.add(2).write(0);
        words.add(3).cast::<u16>().write(ethertype);
    }
    true
}
