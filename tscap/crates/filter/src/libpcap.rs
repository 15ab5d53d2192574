//! libpcap's compiler of filter expressions, opened when it is needed: nothing is
//! linked, so that tscap runs and builds where libpcap is absent.
//!
//! By `dlopen` of the libc crate, which is here anyway: seven functions of one library
//! that stays open are no work for another dependency. In a static build `dlopen` fails,
//! and that is an error like an absent library.
//!
//! `pcap_compile` may run in several threads at once since libpcap 1.8 (2016). It asks
//! the system's resolver for the names in an expression, and waits for the answer.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::net::Ipv4Addr;
use std::ptr::{null_mut, slice_from_raw_parts};

/// Names of the library: Debian's first, then that of most others, then the one for
/// developers.
const NAMES: [&CStr; 3] = [c"libpcap.so.0.8", c"libpcap.so.1", c"libpcap.so"];
/// Bytes of a frame that a filter accepts, which is what its `ret` returns: those of
/// tcpdump.
const SNAPLEN: c_int = 262_144;
/// The netmask is not known (pcap/pcap.h): `ip broadcast` is an error then.
const NETMASK_UNKNOWN: c_uint = 0xffff_ffff;
/// What `pcap_compile` says where an expression needs it.
const NEEDS_NETMASK: &str = "netmask not known";
/// What `pcap_compile` says when its optimiser finds that no frame can match.
const REJECTS_ALL: &str = "expression rejects all packets";

/// Where frames begin, which is what filters are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// At the Ethernet header.
    Ethernet,
    /// At the IPv4 or IPv6 header: tun, WireGuard, IP in IP.
    RawIp,
}

impl LinkType {
    /// Its number in files: LINKTYPE_ETHERNET, LINKTYPE_RAW.
    pub fn in_files(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::RawIp => 101,
        }
    }

    /// That with this number in files.
    pub fn of_file(number: u32) -> Option<Self> {
        let all = [Self::Ethernet, Self::RawIp];
        all.into_iter()
            .find(|it| u32::from(it.in_files()) == number)
    }

    /// libpcap's number of it on Linux (pcap/dlt.h), which is not always that in files.
    pub fn dlt(self) -> c_int {
        match self {
            // DLT_EN10MB
            Self::Ethernet => 1,
            // DLT_RAW
            Self::RawIp => 12,
        }
    }
}

/// An instruction of classic BPF: `struct bpf_insn` of libpcap, `struct sock_filter` of
/// the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// Instructions to leave out if the test is true.
    pub jt: u8,
    /// Instructions to leave out if it is false.
    pub jf: u8,
    /// Its constant.
    pub k: u32,
}

/// `struct bpf_program`.
#[repr(C)]
struct Code {
    length: c_uint,
    instructions: *mut Instruction,
}

/// `struct pcap_pkthdr`.
#[repr(C)]
struct PacketHeader {
    time: libc::timeval,
    captured: u32,
    length: u32,
}

/// `pcap_t`.
type Handle = *mut c_void;
type OpenDead = unsafe extern "C" fn(c_int, c_int) -> Handle;
type Compile = unsafe extern "C" fn(Handle, *mut Code, *const c_char, c_int, c_uint) -> c_int;
type GetErr = unsafe extern "C" fn(Handle) -> *const c_char;
type FreeCode = unsafe extern "C" fn(*mut Code);
type Close = unsafe extern "C" fn(Handle);
type LibVersion = unsafe extern "C" fn() -> *const c_char;
type OfflineFilter = unsafe extern "C" fn(*const Code, *const PacketHeader, *const u8) -> c_int;

/// Why libpcap can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot open libpcap: {0}")]
pub struct NoLibpcap(String);

/// Why an expression was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is correct, and matches nothing.
    #[error("{REJECTS_ALL}")]
    RejectsAll,
    /// It asks for the broadcast addresses of a network, and no netmask is given.
    #[error("{NEEDS_NETMASK}")]
    NeedsNetmask,
    /// What libpcap says is wrong.
    #[error("{0}")]
    Refused(String),
    /// No memory for a handle.
    #[error("libpcap gave no handle: no memory")]
    NoHandle,
}

/// The library, open until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Libpcap {
    open_dead: OpenDead,
    compile: Compile,
    get_error: GetErr,
    free_code: FreeCode,
    close: Close,
    version: LibVersion,
    offline_filter: OfflineFilter,
}

impl Libpcap {
    /// Opens the library.
    ///
    /// # Errors
    /// What the dynamic linker says, when it is absent or lacks a function.
    pub fn open() -> Result<Self, NoLibpcap> {
        let library = open()?;
        let find = |name| find(library, name);
        // SAFETY: the functions have these types since libpcap 0.8 (pcap/pcap.h); the
        // library is never closed.
        unsafe {
            Ok(Self {
                open_dead: transmute::<*mut c_void, OpenDead>(find(c"pcap_open_dead")?),
                compile: transmute::<*mut c_void, Compile>(find(c"pcap_compile")?),
                get_error: transmute::<*mut c_void, GetErr>(find(c"pcap_geterr")?),
                free_code: transmute::<*mut c_void, FreeCode>(find(c"pcap_freecode")?),
                close: transmute::<*mut c_void, Close>(find(c"pcap_close")?),
                version: transmute::<*mut c_void, LibVersion>(find(c"pcap_lib_version")?),
                offline_filter: transmute::<*mut c_void, OfflineFilter>(find(
                    c"pcap_offline_filter",
                )?),
            })
        }
    }

    /// What the library calls itself, such as "libpcap version 1.10.3".
    pub fn version(&self) -> String {
        // SAFETY: gives a static string.
        text(unsafe { (self.version)() })
    }

    /// Compiles a filter for frames of one link type, on an interface whose IPv4 network has
    /// `netmask`. Names in it are resolved now, which
    /// may take as long as the system's resolver takes.
    ///
    /// # Errors
    /// What is wrong with the expression, in libpcap's words.
    pub fn compile(
        &self,
        expression: &CStr,
        link_type: LinkType,
        netmask: Option<Ipv4Addr>,
        optimise: bool,
    ) -> Result<Vec<Instruction>, CompileError> {
        // SAFETY: takes no pointers.
        let handle = unsafe { (self.open_dead)(link_type.dlt(), SNAPLEN) };
        if handle.is_null() {
            return Err(CompileError::NoHandle);
        }
        let mut code = Code {
            length: 0,
            instructions: null_mut(),
        };
        // SAFETY: the handle is open, `code` is there to be written, and the expression
        // ends in a zero. The code is read before it is freed, and the error before the
        // handle that it belongs to is closed.
        unsafe {
            let failed = (self.compile)(
                handle,
                &raw mut code,
                expression.as_ptr(),
                optimise.into(),
                // As its code compares it with a loaded address: in this host's order.
                netmask.map_or(NETMASK_UNKNOWN, c_uint::from),
            );
            let compiled = if failed == 0 {
                let all = slice_from_raw_parts(code.instructions, code.length as usize);
                let compiled = (*all).to_vec();
                (self.free_code)(&raw mut code);
                Ok(compiled)
            } else {
                Err(text((self.get_error)(handle)))
            };
            (self.close)(handle);
            compiled.map_err(|message| match message.as_str() {
                REJECTS_ALL => CompileError::RejectsAll,
                message if message.starts_with(NEEDS_NETMASK) => CompileError::NeedsNetmask,
                _ => CompileError::Refused(message),
            })
        }
    }

    /// Runs a filter on the first bytes of a frame that was `length` bytes long, by
    /// libpcap's interpreter; returns the verdict, 0 for no match. Tests hold tscap's
    /// own to this.
    ///
    /// # Panics
    /// If there are 2³² instructions or bytes.
    pub fn verdict(&self, program: &[Instruction], frame: &[u8], length: u32) -> u32 {
        let code = Code {
            length: c_uint::try_from(program.len()).expect("a program that fits"),
            instructions: program.as_ptr().cast_mut(),
        };
        let header = PacketHeader {
            time: libc::timeval {
                tv_sec: 0,
                tv_usec: 0,
            },
            captured: u32::try_from(frame.len()).expect("a frame that fits"),
            length,
        };
        // SAFETY: the function reads `length` instructions and `captured` bytes, all of
        // which outlive the call, and writes nothing. It refuses unknown instructions,
        // and checks each load against `captured`.
        let verdict =
            unsafe { (self.offline_filter)(&raw const code, &raw const header, frame.as_ptr()) };
        verdict.cast_unsigned()
    }
}

fn open() -> Result<*mut c_void, NoLibpcap> {
    let mut reason = None;
    for name in NAMES {
        // SAFETY: the name ends in a zero. libpcap's constructors do nothing unsafe.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !library.is_null() {
            return Ok(library);
        }
        // What is said of the first name is what most people can use.
        reason.get_or_insert_with(linker_error);
    }
    Err(NoLibpcap(reason.unwrap_or_default()))
}

fn find(library: *mut c_void, name: &CStr) -> Result<*mut c_void, NoLibpcap> {
    // SAFETY: the library is open and the name ends in a zero.
    let function = unsafe { libc::dlsym(library, name.as_ptr()) };
    if function.is_null() {
        return Err(NoLibpcap(linker_error()));
    }
    Ok(function)
}

/// What went wrong last in this thread.
fn linker_error() -> String {
    // SAFETY: takes nothing, and gives null or a string that is valid until the next call
    // in this thread.
    text(unsafe { libc::dlerror() })
}

/// A copy of a string of the library's; empty if there is none.
fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: private to this file; each caller passes a string that ends in a zero.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}
