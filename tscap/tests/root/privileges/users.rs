//! Who goes on by default, and users that start with capabilities.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Plan, capture_on};
use tscap_testkit::command::tscap_path;
use tscap_testkit::files;
use tscap_testkit::root::root_with;

use super::status::{self, NOBODY_UID};

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "setpriv", "unshare", "mount"];
/// A number that nobody has.
const UID: u32 = 64_999;

/// On a machine with a user `tscap`, as the package makes it.
fn with_user<'a>(plan: Plan<'a>, folder: &Path) -> Plan<'a> {
    let users = fs::read_to_string("/etc/passwd").expect("the users");
    let users = format!("{users}tscap:x:{UID}:{UID}::/nonexistent:/usr/sbin/nologin\n");
    let list = folder.join("passwd");
    fs::write(&list, users).expect("write a list of users");
    let script = format!(
        "mount --bind {} /etc/passwd && exec \"$0\" \"$@\"",
        list.display()
    );
    plan.through(["unshare", "--mount", "sh", "-c", &script])
}

#[test]
fn root_goes_on_as_tscap_where_there_is_one() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("user");
    let (folder, list) = (files::folder(), files::folder());
    let path = folder.path().join("out.pcapng");
    let plan = with_user(capture_on(&bench.rx, &path), list.path());
    let capture = plan.ready();
    status::wait_for(capture.pid(), |_, it| (it.uid, it.capabilities) == (UID, 0));
    capture.stop().success();
    assert_eq!(files::owner(&path), (UID, 0));

    // A container may have a root that can't become another user.
    let plan = with_user(capture_on(&bench.rx, &path), list.path());
    let capture = plan.through(["setpriv", "--bounding-set=-setuid"]).ready();
    capture.wait_line("note: goes on as root, because this process lacks CAP_SETUID");
    status::wait_for(capture.pid(), |_, it| (it.uid, it.capabilities) == (0, 0));
    capture.stop().success();
    let plan = capture_on(&bench.rx, &path).with(["-Z", "nobody"]);
    let refused = plan.through(["setpriv", "--bounding-set=-setuid"]).run();
    refused.failure(1, &["cannot go on as nobody", "lacks CAP_SETUID"]);

    // Nobody has asked for that user: the folder decides.
    let plan = with_user(capture_on(&bench.rx, &path), list.path());
    let capture = plan.with(["-b", "packets:10"]).ready();
    let reported = capture.wait_line("note: goes on as root");
    assert!(reported.contains("tscap can't make files in"), "{reported}");
    status::wait_for(capture.pid(), |_, it| it.uid == 0);
    capture.stop().success();
}

/// A user with the capabilities of the package's program: they are given up all the same, and
/// settings are changed and given back under a journal of the user's own.
#[test]
fn a_user_with_capabilities_gives_them_up() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("user-caps");
    bench.rx.offload("rx-vlan-offload", true);
    let before = bench.rx.offloads();
    let folder = files::public_folder();
    let copy = folder.path().join("tscap");
    files::copy_program(tscap_path(), &copy);
    let path = folder.path().join("out.pcapng");
    let set = "+bpf,+net_admin,+perfmon,+net_raw";
    let as_user = |plan: Plan<'_>| {
        plan.through([
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ])
        .through([format!("--inh-caps=-all,{set}")])
        .through([format!("--ambient-caps=-all,{set}")])
        .with(["--offloads", "off"])
        .ready()
    };
    let capture = as_user(capture_on(&bench.rx, &path));
    assert!(!bench.rx.offloads()["rx-vlan-offload"]);
    status::wait_for(capture.pid(), |_, it| {
        (it.uid, it.capabilities) == (NOBODY_UID, 0)
    });
    let keeper = status::of(capture.keeper().expect("a keeper"));
    assert_eq!(
        (keeper.uid, keeper.capabilities),
        (NOBODY_UID, status::NET_ADMIN)
    );
    let journals = format!("/tmp/tscap-{NOBODY_UID}");
    let mode = fs::metadata(&journals)
        .expect("a folder of the user's")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    capture.stop().success();
    assert_eq!(bench.rx.offloads(), before);
    let left = fs::read_dir(&journals).expect("the folder");
    let left = left.map(|it| it.expect("an entry").file_name());
    assert!(left.eq(["lock"]));
    fs::remove_dir_all(&journals).expect("remove the folder");

    let plan = capture_on(&bench.rx, &path).with(["-Z", "root"]);
    let plan = plan.through([
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ]);
    let plan = plan.through([format!("--inh-caps=-all,{set}")]);
    let refused = plan.through([format!("--ambient-caps=-all,{set}")]).run();
    refused.failure(1, &["only root can become another user"]);
}
