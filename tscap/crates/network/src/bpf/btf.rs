//! The BTF of kernel modules and of programs, as descriptors.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::{BPF_OBJ_GET_INFO_BY_FD, GetId, GetInfo, bpf, owned};

/// `enum bpf_cmd` in include/uapi/linux/bpf.h.
const BPF_BTF_LOAD: c_int = 18;
const BPF_BTF_GET_FD_BY_ID: c_int = 19;
const BPF_BTF_GET_NEXT_ID: c_int = 23;
/// Longest name of a module, with the zero at its end (`MODULE_NAME_LEN`,
/// include/linux/moduleparam.h).
const NAME_MAX: usize = 64;

/// The `BPF_BTF_LOAD` member of `union bpf_attr`. Kernels before 6.4 know no
/// `btf_log_true_size`, the last of `log`, and refuse a structure with something there.
#[repr(C)]
struct Load {
    btf: u64,
    log_buf: u64,
    btf_size: u32,
    log: [u32; 3],
}

const _: () = assert!(size_of::<Load>() == 32, "padding would be any bytes");

/// `struct bpf_btf_info`.
#[repr(C)]
#[derive(Default)]
struct BtfInfo {
    btf: u64,
    btf_size: u32,
    id: u32,
    name: u64,
    name_len: u32,
    kernel_btf: u32,
}

/// Gives the kernel the BTF of a program.
pub fn load(btf: &[u8]) -> io::Result<OwnedFd> {
    let mut attr = Load {
        btf: btf.as_ptr().expose_provenance() as u64,
        log_buf: 0,
        btf_size: u32::try_from(btf.len()).map_err(io::Error::other)?,
        log: [0; 3],
    };
    owned(bpf(BPF_BTF_LOAD, &mut attr)?)
}

/// The BTF of the module `name`; `None` if none is loaded that has some.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn of_module(name: &str) -> io::Result<Option<OwnedFd>> {
    let mut id = 0;
    while let Some(next) = id_after(id)? {
        id = next;
        let mut attr = GetId {
            id,
            next_id: 0,
            open_flags: 0,
        };
        let btf = match bpf(BPF_BTF_GET_FD_BY_ID, &mut attr) {
            Ok(fd) => owned(fd)?,
            // It has gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if is_of(&btf, name)? {
            return Ok(Some(btf));
        }
    }
    Ok(None)
}

fn id_after(id: u32) -> io::Result<Option<u32>> {
    let mut attr = GetId {
        id,
        next_id: 0,
        open_flags: 0,
    };
    match bpf(BPF_BTF_GET_NEXT_ID, &mut attr) {
        Ok(_) => Ok(Some(attr.next_id)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_of(btf: &OwnedFd, module: &str) -> io::Result<bool> {
    let mut name = [0_u8; NAME_MAX];
    let mut info = BtfInfo {
        name: name.as_mut_ptr().expose_provenance() as u64,
        name_len: u32::try_from(NAME_MAX).expect("64"),
        ..BtfInfo::default()
    };
    let mut attr = GetInfo {
        bpf_fd: btf.as_raw_fd().cast_unsigned(),
        info_len: u32::try_from(size_of::<BtfInfo>()).expect("32 bytes"),
        info: (&raw mut info).expose_provenance() as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
    Ok(info.kernel_btf != 0 && name[..length] == *module.as_bytes())
}
