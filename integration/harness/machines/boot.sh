#!/bin/sh
# boot.sh TREE DISK FOLDER NETWORK CGROUP NAME: runs systemd as process 1 of a machine of its own, in the foreground.
#
# TREE is a root that stays as it is: DISK, an image with ext4, takes all changes and is deleted here, so that the kernel
# frees it with the machine. FOLDER is empty. NETWORK is the path of a network namespace, and CGROUP a folder of cgroup2.
# All mounts stand in a mount namespace, so they end with the machine. The machine sees the kernel's settings, and
# may change those of its network alone.
set -eu
mkdir "$5"
echo $$ > "$5/cgroup.procs"
# If this process dies, the kernel ends unshare, and unshare's child with it: process 1, and with that the machine.
exec setpriv --pdeathsig KILL nsenter --net="$4" \
	unshare --mount --pid --uts --ipc --cgroup --fork --kill-child --propagation private sh -euc '
tree=$0 disk=$1 folder=$2 name=$3
hostname "$name"
mount -t tmpfs tmpfs "$folder"
cd "$folder"
mkdir disk root net
mount -o loop "$disk" disk
rm "$disk"
mkdir -p disk/upper disk/work
mount -t overlay -o lowerdir="$tree",upperdir="$folder/disk/upper",workdir="$folder/disk/work" overlay root
mount -t proc proc root/proc
mount --bind root/proc/sys/net net
mount --bind root/proc/sys root/proc/sys
mount -o remount,bind,ro root/proc/sys
mount --move net root/proc/sys/net
cd root
echo "$name" > etc/hostname
echo "127.0.0.1 localhost $name" > etc/hosts
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755,nosuid tmpfs dev
for device in null zero full random urandom tty; do
	: > dev/$device
	mount --bind /dev/$device dev/$device
done
mkdir dev/pts dev/shm dev/mqueue
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
for stream in 0stdin 1stdout 2stderr; do ln -s "/proc/self/fd/${stream%std*}" "dev/${stream#?}"; done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir .old
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
# The clock, the modules and the power belong to the machine of the test.
exec env -i container=longhaul PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_boot,-syslog /lib/systemd/systemd
' "$1" "$2" "$3" "$6"
