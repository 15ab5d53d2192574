//! A network interface of the guest, fed by datagrams: one is one frame. They
//! wait where the guest has no room for them, so that none is lost before it.

use std::ops::Range;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tscap_testkit::frame::Frame;

/// Longest that the guest may refuse frames.
const LIMIT: Duration = Duration::from_secs(20);
/// Who sends: nobody.
const STRANGER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];

/// What the interface is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// virtio-net, whose host lets frames be: native XDP.
    Virtio,
    /// VMware's, which takes VLAN tags off.
    Vmxnet3,
}

impl Kind {
    /// Its driver.
    pub fn driver(self) -> &'static str {
        match self {
            Self::Virtio => "virtio_net",
            Self::Vmxnet3 => "vmxnet3",
        }
    }
}

/// An interface.
#[derive(Debug)]
pub struct Nic {
    /// Its name in the guest.
    pub name: String,
    number: usize,
    kind: Kind,
    socket: UnixDatagram,
    ours: PathBuf,
    qemus: PathBuf,
}

impl Nic {
    /// The interface `eth<number>`, with its sockets in `folder`.
    pub fn new(folder: &Path, number: usize, kind: Kind) -> Self {
        let ours = folder.join(format!("frames{number}"));
        let socket = UnixDatagram::bind(&ours)
            .unwrap_or_else(|error| panic!("bind {}: {error}", ours.display()));
        socket.set_write_timeout(Some(LIMIT)).expect("a timeout");
        Self {
            name: format!("eth{number}"),
            number,
            kind,
            socket,
            ours,
            qemus: folder.join(format!("nic{number}")),
        }
    }

    /// Its id in QEMU.
    pub fn id(&self) -> String {
        format!("nic{}", self.number)
    }

    /// What makes it, for QEMU.
    pub fn qemu_arguments(&self) -> [String; 4] {
        let Self { number, kind, .. } = self;
        let (ours, qemus) = (self.ours.display(), self.qemus.display());
        let device = match kind {
            Kind::Virtio => {
                "virtio-net-pci,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,guest_csum=off"
            }
            Kind::Vmxnet3 => "vmxnet3",
        };
        let mac = self.mac().map(|byte| format!("{byte:02x}")).join(":");
        [
            "-netdev".into(),
            format!(
                "dgram,id=net{number},local.type=unix,local.path={qemus},\
                 remote.type=unix,remote.path={ours}"
            ),
            "-device".into(),
            format!(
                "{device},id={},netdev=net{number},mac={mac},romfile=",
                self.id()
            ),
        ]
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn mac(&self) -> [u8; 6] {
        let last = u8::try_from(self.number).expect("few interfaces");
        [0x52, 0x54, 0, 0, 0, last]
    }

    /// Frames for it.
    pub fn frame(&self, size: usize) -> Frame {
        Frame::between(STRANGER, self.mac(), size)
    }

    /// Sends it the frames of some numbers.
    pub fn send(&self, frame: &Frame, numbers: Range<u64>) {
        for number in numbers {
            let sent = self.socket.send_to(&frame.bytes(number), &self.qemus);
            sent.unwrap_or_else(|error| panic!("frame {number} to {}: {error}", self.name));
        }
    }

    /// The same with this time from one to the next.
    pub fn send_paced(&self, frame: &Frame, numbers: Range<u64>, period: Duration) {
        let mut due = Instant::now();
        for number in numbers {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.send(frame, number..number + 1);
            due += period;
        }
    }
}
