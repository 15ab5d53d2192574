# Boots systemd, the one of this machine, with a copy of everything that it writes to.
# Runs in namespaces of its own, of PIDs, mounts and cgroups. $1: a folder that can be
# written to; $2: tscap; $3: the folder of the unit.
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
# As the packages install it.
grep -q ^tscap: etc/group || echo tscap:x:64999: >> etc/group
cp "$2" usr/bin/tscap
mkdir -p usr/libexec/tscap
cp "$2" usr/libexec/tscap/tscap
chroot . chown root:tscap /usr/libexec/tscap/tscap
chmod 750 usr/libexec/tscap/tscap
setcap cap_bpf,cap_net_admin,cap_net_raw,cap_perfmon=ep usr/libexec/tscap/tscap
cp "$3/tscap@.service" etc/systemd/system/
mkdir -p etc/default etc/tscap
cp "$3/tscap.default" etc/default/tscap
rm -rf var/log/journal var/lib/tscap
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
    cp -a /dev/$device dev/
done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
echo 0123456789abcdef0123456789abcdef > etc/machine-id
# Nothing of what else this machine may run.
cat > etc/systemd/system/booted.target <<'UNIT'
[Unit]
Requires=systemd-journald.service
After=systemd-journald.service
AllowIsolate=yes
UNIT
mkdir old
pivot_root . old
umount -l old
export container=tscap-test
exec /lib/systemd/systemd --unit=booted.target --log-target=journal --show-status=false
