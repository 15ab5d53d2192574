//! chronyd (`-x`, so that it never sets the clock), a server and its client.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::command::{SHORT, run};
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::root;
use tscap_testkit::wait::until;
use tscap_utc::{Leap, Parts, Roots, UtcReader, UtcSource};

use super::{Daemon, by, program, utc_of};

const LIMIT: Duration = Duration::from_secs(60);

/// chronyd in a namespace with these lines, and its files in a new folder.
fn chronyd(program: &Path, netns: &Netns, folder: &Path, lines: &[String]) -> Daemon {
    std::fs::create_dir(folder).expect("a folder");
    // As it wants the place of its socket to be.
    let own = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(folder, own).expect("a mode");
    let file = folder.join("conf");
    let pid = format!("pidfile {}/pid", folder.display());
    std::fs::write(&file, [lines, &[pid]].concat().join("\n") + "\n").expect("a file");
    let mut command = netns.command(program.to_str().expect("UTF-8"));
    command.args(["-x", "-d", "-u", "root", "-f"]).arg(&file);
    Daemon::start(command, &folder.join("said"))
}

/// `chronyc tracking`: the time of the latest update, and in s correction, root delay and root
/// dispersion.
fn tracking(chronyc: &Path, socket: &Path) -> Option<[f64; 4]> {
    let mut command = Command::new(chronyc);
    command.arg("-h").arg(socket).args(["-c", "tracking"]);
    let said = run(&mut command, SHORT).stdout;
    let fields: Vec<f64> = said
        .trim()
        .split(',')
        .map(|it| it.parse().unwrap_or(f64::NAN))
        .collect();
    let fields = [3, 4, 10, 11].map(|at| fields.get(at).copied().unwrap_or(f64::NAN));
    (fields[0] > 0.0 && fields.iter().all(|it| it.is_finite())).then_some(fields)
}

#[test]
fn the_root_distance_of_a_real_chronyd_is_read_and_holds() {
    let Some(_lock) = root() else {
        return;
    };
    let Some((daemon, chronyc)) =
        program("chrony", "usr/sbin/chronyd").zip(program("chrony", "usr/bin/chronyc"))
    else {
        return;
    };
    let bench = Bench::new("utc-chrony");
    bench.acquaint();
    let folder = files::folder();
    let at = |name: &str| folder.path().join(name);
    let line = |line: &str| line.to_owned();
    let lines = [
        "local stratum 1",
        "allow all",
        "cmdport 0",
        "bindcmdaddress /",
    ]
    .map(line);
    let mut server = chronyd(&daemon, &bench.tx.netns, &at("server"), &lines);
    let socket = at("client").join("chronyd.sock");
    // At its port, 323, as well.
    let lines = [
        line("server 10.9.0.1 minpoll 0 maxpoll 0"),
        line("port 0"),
        format!("bindcmdaddress {}", socket.display()),
    ];
    let mut client = chronyd(&daemon, &bench.rx.netns, &at("client"), &lines);
    until("an update of the client", LIMIT, || {
        server.must_run();
        client.must_run();
        tracking(&chronyc, &socket)
    });
    // By a reading between two of chronyd's own client that are of one update.
    let (before, said, after) = until("two readings of one update", LIMIT, || {
        let before = tracking(&chronyc, &socket)?;
        let utc = utc_of(&bench.rx.netns, &[]);
        let after = tracking(&chronyc, &socket)?;
        (before[0] == after[0]).then_some((before, by(&utc, "chrony").clone(), after))
    });
    let ns = |name: &str| {
        said[name]
            .as_i64()
            .unwrap_or_else(|| panic!("{name}: {said}")) as f64
    };
    let [_, _, delay, dispersion] = before.map(|it| it * 1e9);
    assert!(
        (ns("root_delay_ns") - delay).abs() <= 2.0 + delay * 1e-6,
        "{said} {before:?}"
    );
    // It grows all the time.
    let grown = ns("root_dispersion_ns");
    assert!(
        grown >= dispersion - 2.0 && grown <= after[3] * 1e9 + 2.0 + grown * 1e-6,
        "{said}"
    );
    assert_eq!(
        (&said["stratum"], &said["reference"]),
        (&2.into(), &"10.9.0.1".into())
    );
    assert_eq!(said["leap"], "none");
    let parts = ns("correction_ns").abs() + (ns("root_delay_ns") / 2.0).ceil() + grown;
    let growth = ns("growth_ns");
    assert_eq!(ns("bound_ns"), parts + growth, "{said}");
    // The truth: server and client have one clock.
    assert!(said["utc_less_host_ns"][0].as_i64() <= Some(0), "{said}");
    assert!(said["utc_less_host_ns"][1].as_i64() >= Some(0), "{said}");
    // The kernel's clock, which chronyd leaves alone, may be bounded by another daemon's figure.
    let unprivileged = ["setpriv", "--reuid", "65534", "--clear-groups", "--"].map(line);
    let utc = utc_of(&bench.rx.netns, &unprivileged);
    assert!(
        by(&utc, "chrony")["bound_ns"].is_u64(),
        "by any user: {utc}"
    );

    // Where there is no port, by its socket; and nothing of that is left.
    let roots = Roots {
        chrony_port: SocketAddr::from(([127, 0, 0, 1], 9)),
        chrony_socket: socket.clone(),
        ..Roots::below(folder.path())
    };
    let mut reader = bench.rx.netns.enter(|| UtcReader::open(roots));
    let said = reader.read();
    let said = said.by(UtcSource::Chrony).expect("an answer").clone();
    let Parts::Chrony { leap, stratum, .. } = said.parts else {
        panic!("{said:?}");
    };
    assert_eq!(
        (leap, stratum, said.bound_ns.is_some()),
        (Leap::None, 2, true)
    );
    let names = || {
        let entries = std::fs::read_dir(at("client")).expect("a folder");
        let names = entries.map(|it| it.expect("an entry").file_name().into_string());
        let names: Vec<_> = names.map(|it| it.expect("UTF-8")).collect();
        names
            .into_iter()
            .filter(|it| it.starts_with("tscap."))
            .collect::<Vec<_>>()
    };
    assert_eq!(names().len(), 1);
    // Its server ends: the bound grows with the dispersion.
    drop(server);
    until("a greater bound", LIMIT, || {
        let now = reader.read();
        let now = now.by(UtcSource::Chrony)?.bound_ns?;
        (now > said.bound_ns?).then_some(())
    });
    // And itself: what it said is not used without end.
    drop(client);
    until("no answer", LIMIT, || {
        reader.read().by(UtcSource::Chrony).is_none().then_some(())
    });
    drop(reader);
    assert!(names().is_empty(), "{:?}", names());
}
