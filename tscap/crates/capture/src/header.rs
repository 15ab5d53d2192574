//! What the head of the file says of machine and interfaces.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::opened::Opened;
use super::plan::{Capture, Target};
use tscap_base::failure::{Context as _, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_engine::{Event, Io, Names, Output};
use tscap_file::pcapng::{
    FileWriter, FollowerOption, HardwareOption, Hooks, InterfaceInfo, InterfaceOption, PartOption,
    SectionInfo, StampOption, VlanTags, most_final_bytes,
};
use tscap_filter::LinkType;
use tscap_host::{process, system};
use tscap_network::ethtool;
use tscap_network::netdev::Link;
use tscap_network::netns::NetnsId;

/// How frames of an interface are taken.
pub(super) struct Taken {
    pub hooks: Hooks,
    pub stamp: StampOption,
    pub offloads: BTreeMap<String, bool>,
    pub vlan_tags: VlanTags,
    pub ends_frames: bool,
    pub hardware: Option<HardwareOption>,
}

/// What the file says of an interface of this thread's network namespace, which is called
/// `namespace` if it is not this process's own.
pub(super) fn describe(
    plan: &Capture,
    link: &Link,
    namespace: Option<&str>,
    taken: Taken,
) -> InterfaceInfo {
    let mut tscap = InterfaceOption::new(taken.hooks, taken.stamp, taken.offloads);
    tscap.vlan_tags = Some(taken.vlan_tags);
    tscap.tap = taken.ends_frames;
    tscap.hardware = taken.hardware;
    tscap.namespace = namespace.map(str::to_owned);
    let filter = plan.filter.as_ref();
    tscap.filter_compiler = filter.map(|filter| filter.compiler.clone());
    tscap.reference = plan.reference.as_ref().map(|it| it.name().to_owned());
    let follower = plan.reference.as_ref().and_then(|it| it.id());
    tscap.follower = follower.map(|id| FollowerOption {
        id: id.to_owned(),
        clocks: plan.writers,
    });
    tscap.netns = NetnsId::here().ok();
    tscap.boot_id = process::boot_id(&KernelFiles::live()).ok();
    let driver = || ethtool::driver(&link.name).map(|driver| driver.name);
    let own = link.alias.clone().or_else(driver);
    let description = [namespace.map(str::to_owned), own].into_iter().flatten();
    let description = description.reduce(|namespace, own| format!("{namespace}: {own}"));
    InterfaceInfo {
        name: link.name.clone(),
        description,
        link_type: link.frames().unwrap_or(LinkType::Ethernet),
        mac: link.mac,
        speed: ethtool::speed_bits_per_s(&link.name),
        snaplen: plan.snaplen,
        filter: filter.map(|filter| filter.expression.clone()),
        os: system::os(),
        tscap,
    }
}

/// What the files of so many writers say of the machine, and of what they are parts.
pub(super) fn sections(writers: u32) -> Result<Vec<SectionInfo>, Failure> {
    let capture = process::new_id(&KernelFiles::live());
    let capture = capture.context("cannot name the capture of which the files are parts")?;
    let parts = (0..writers).map(|writer| SectionInfo {
        hardware: system::hardware(),
        os: system::os(),
        application: concat!("tscap ", env!("CARGO_PKG_VERSION")).into(),
        part: (writers > 1).then(|| PartOption::new(capture.clone(), writer, writers)),
    });
    Ok(parts.collect())
}

pub(super) fn write_headers(
    (target, io): (&Target, Io),
    opened: Opened,
    file: &mut FileWriter,
    tell: &UnboundedSender<Event>,
) -> Result<(Output, Option<(PathBuf, Names)>), Failure> {
    let (mut output, first) = start(target, io, opened)?;
    let no_room = |failure: Failure| failure.hint("give -w a file where there is room");
    output
        .reserve(most_final_bytes(file.interfaces()))
        .context(format!("cannot keep room for the end of {target}"))
        .map_err(no_room)?;
    if let Err(error) = output.write_headers(file.take()) {
        if error.is_reader_gone() {
            // Ends the capture as it does at any later time.
            let _ = tell.send(Event::ReaderGone);
            return Ok((output, first));
        }
        return Err(error)
            .context(format!("cannot write the file header to {target}"))
            .map_err(no_room);
    }
    Ok((output, first))
}

fn start(
    target: &Target,
    io: Io,
    opened: Opened,
) -> Result<(Output, Option<(PathBuf, Names)>), Failure> {
    opened.start(io).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => Failure::new(format!("cannot write {target} direct")).hint(
            "give -w a file on a disk whose file system has direct writes, such as ext4 \
                     or xfs; or leave out --io direct",
        ),
        _ => Failure::from_error(error, format!("cannot empty {target}")),
    })
}
