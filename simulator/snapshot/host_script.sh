#!/bin/sh
# What driver-manager could see of this node, as text for `dmsim snapshot`. Only looks: writes nothing, loads nothing.
#
#   sh host.sh > node.txt                       on the node itself
#   sh host.sh --root /host > node.txt          in a pod that has the node's root at /host (kubectl debug node/NAME)
#   sh host.sh --no-run > node.txt              without asking nvidia-smi
#
# nvidia-smi is asked for the driver's version, as driver-manager does, but only where the nvidia module is loaded already, for
# otherwise it would load it. Without root some things cannot be seen; the output says which. Needs nothing but sh and the
# usual small tools (busybox has them all).
#
# Of processes it tells which ones have a GPU open: number, name and the pod they belong to. Of the kernel's command line only
# the words about modules. No environment, no arguments, no file of any other program.

set -u
LC_ALL=C
export LC_ALL
root=''
may_run=yes
while [ $# -gt 0 ]; do
	case $1 in
	--root)
		[ $# -gt 1 ] || { echo "$0: --root needs a directory" >&2; exit 2; }
		root=${2%/}
		shift
		;;
	--no-run) may_run=no ;;
	*)
		echo "usage: $0 [--root DIR] [--no-run]" >&2
		exit 2
		;;
	esac
	shift
done
[ -z "$root" ] || [ -d "$root" ] || { echo "$0: $root is no directory" >&2; exit 2; }

tab=$(printf '\t')
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
elsewhere='/busybox /opt/bin /opt/nvidia/bin /usr/local/nvidia/bin /usr/local/cuda/bin /home/kubernetes/bin/nvidia/bin
/usr/libexec/nvidia/tesla/bin /usr/lib/wsl/lib'

# say KIND FIELD...: one record, its fields apart by tabs.
say() {
	line=$1
	shift
	for field in "$@"; do
		line=$line$tab$field
	done
	printf '%s\n' "$line"
}

# text [FILE]: the lines of a file, or of standard input, each behind a bar. An empty line after them says that the last one is
# whole.
text() {
	sed 's/^/|/' ${1+"$1"}
	printf '\n'
}

# value PATH: a file of one line.
value() {
	value=''
	{ read -r value <"$root$1"; } 2>/dev/null
	say f "$1" -r--r--r--
	printf '|%s\n\n' "$value"
}

# start FILE: its first 64 KiB.
start() {
	dd if="$1" bs=65536 count=1 2>/dev/null
}

# look PATH [text|program]: what is at a path of the node, and each link on the way. Links stay inside the root.
# Afterwards `found` is where it led, "" if to nothing.
look() {
	look_as=${2:-}
	todo=${1#/}
	found=''
	links=0
	while [ -n "$todo" ]; do
		case $todo in
		*/*)
			part=${todo%%/*}
			todo=${todo#*/}
			;;
		*)
			part=$todo
			todo=''
			;;
		esac
		case $part in
		'' | .) continue ;;
		..)
			found=${found%/*}
			continue
			;;
		esac
		if [ -h "$root$found/$part" ]; then
			links=$((links + 1))
			target=$(readlink "$root$found/$part")
			say l "$found/$part" "$target"
			if [ "$links" -gt 40 ]; then
				found=''
				return
			fi
			case $target in
			/*) found='' ;;
			esac
			todo=${target#/}${todo:+/$todo}
			continue
		fi
		found=$found/$part
		if ! [ -e "$root$found" ]; then
			found=''
			return
		fi
	done
	[ -n "$found" ] && entry "$found" "$look_as"
}

# entry PATH [text|program]: what is there, which is no link.
entry() {
	here=$root$1
	if [ -d "$here" ]; then
		say d "$1"
		return
	fi
	if ! [ -f "$here" ]; then
		say x "$1"
		return
	fi
	mode=-rw-r--r--
	if [ "$2" != text ]; then
		mode=$(ls -ld "$here" 2>/dev/null)
		mode=${mode%% *}
	fi
	if ! [ -r "$here" ]; then
		say f "$1" "$mode"
		say n "$1 cannot be read without root"
		return
	fi
	case $2 in
	text)
		say f "$1" "$mode"
		start "$here" | text
		;;
	program)
		head=$(dd if="$here" bs=20 count=1 2>/dev/null | od -An -tx1 2>/dev/null | tr -d ' \n')
		case $head in
		7f454c46*)
			nvml=-
			grep -q libnvidia-ml.so "$here" 2>/dev/null && nvml=nvml
			say e "$1" "$mode" "$head" "$nvml"
			;;
		*)
			say f "$1" "$mode"
			if start "$here" | grep -Eiq 'passw|secret|token|api.?key'; then
				say n "$1 may hold a secret: left out"
			else
				start "$here" | text
			fi
			;;
		esac
		;;
	*) say f "$1" "$mode" ;;
	esac
}

# command PATH: something that may be started, what it is started by, and what it hands over to.
command_at() {
	next=$1
	turns=0
	while [ -n "$next" ] && [ "$turns" -lt 8 ]; do
		turns=$((turns + 1))
		look "$next" program
		next=''
		if [ -n "$found" ] && [ -f "$root$found" ] && [ -r "$root$found" ]; then
			case $(dd if="$root$found" bs=2 count=1 2>/dev/null | tr -d '\000') in
			'#!')
				script=$root$found
				interpreter=$(start "$script" | sed -n '1s/^#![ 	]*\([^ 	]*\).*/\1/p')
				next=$(start "$script" | sed -n 's/^[ 	]*exec[ 	]\{1,\}\(\/[^ 	]*\).*/\1/p' | sed -n 1p)
				[ -n "$interpreter" ] && look "$interpreter"
				;;
			esac
		fi
	done
}

printf '# dmsim host 1\n'
say uid "$(id -u)"
[ "$(id -u)" = 0 ] || say n 'it was run without root'

# --- the system

look /proc/sys/kernel/osrelease text
if [ -n "$found" ]; then
	kernel=$(cat "$root$found")
else
	kernel=$(uname -r)
fi
say kernel "$kernel"
look /proc/sys/kernel/arch text
[ -n "$found" ] || [ -n "$root" ] || say machine "$(uname -m)"
look /proc/sys/kernel/modprobe text
for file in /etc/os-release /usr/lib/os-release; do
	look "$file"
	if [ -n "$found" ] && [ -f "$root$found" ] && [ -r "$root$found" ]; then
		say f "$found" -rw-r--r--
		sed -n '/^\(NAME\|ID\|VERSION_ID\|PRETTY_NAME\)=/p' "$root$found" | text
	fi
done
if [ -r "$root/proc/cmdline" ]; then
	say f /proc/cmdline -r--r--r--
	tr ' ' '\n' <"$root/proc/cmdline" | grep -E '^(rd\.driver\.blacklist|(modprobe|module)[._]blacklist|nouveau\.|nvidia[.-]|vfio|[a-z_]*iommu)' |
		tr '\n' ' ' | text
fi
for file in "$root"/proc/sys/fs/binfmt_misc/qemu-*; do
	[ -e "$file" ] && say f "${file#"$root"}" -rw-r--r--
done

# --- modules, PCI functions, mounts, what driver containers leave

if [ -r "$root/proc/modules" ]; then
	look /proc/modules
	say f /proc/modules -r--r--r--
	text "$root/proc/modules"
else
	say n 'there is no /proc/modules'
fi
for module in "$root"/sys/module/nvidia* "$root"/sys/module/nouveau "$root"/sys/module/gdrdrv "$root"/sys/module/nv_peer_mem \
	"$root"/sys/module/vfio* "$root"/sys/module/nvgrace* "$root"/sys/module/mlx5_core; do
	for file in refcnt version; do
		[ -r "$module/$file" ] && value "${module#"$root"}/$file"
	done
done
if [ -d "$root/sys/bus/pci/devices" ]; then
	say d /sys/bus/pci/devices
	for device in "$root"/sys/bus/pci/devices/*; do
		vendor=''
		[ -r "$device/vendor" ] && read -r vendor <"$device/vendor"
		case $vendor in
		0x10de | 0x15b3) ;;
		*) continue ;;
		esac
		name=/sys/bus/pci/devices/${device##*/}
		for file in vendor device class subsystem_vendor subsystem_device modalias driver_override; do
			[ -r "$device/$file" ] && value "$name/$file"
		done
		for link in driver iommu_group physfn; do
			[ -h "$device/$link" ] && say l "$name/$link" "$(readlink "$device/$link")"
		done
	done
else
	say n 'there is no /sys/bus/pci/devices'
fi
for table in /proc/1/mountinfo /proc/self/mountinfo; do
	if [ -r "$root$table" ]; then
		say f "$table" -r--r--r--
		sed -n 's/^\([^ ]* [^ ]* [^ ]*\) [^ ]* \(\/run\/\(nvidia\|mellanox\)[^ ]*\) .*/\1 \/ \2/p' "$root$table" | text
		break
	fi
done
look /run/nvidia/driver
for file in /run/nvidia/nvidia-driver.pid /run/nvidia/nvidia-driver.state /run/mellanox/drivers/.driver-ready; do
	look "$file" text
done

# --- who has a GPU open

if [ "$(id -u)" = 0 ] && [ -d "$root/proc/1" ]; then
	say open
	ls -l "$root"/proc/[0-9]*/fd 2>/dev/null |
		sed -n -e 's,^.*/proc/\([0-9]*\)/fd:$,P \1,p' -e 's,^.* -> \(/dev/nvidia[^ ]*\)$,D \1,p' \
			-e 's,^.* -> \(/dev/vfio/[^ ]*\)$,D \1,p' |
		while read -r kind what; do
			if [ "$kind" = P ]; then
				pid=$what
				continue
			fi
			comm=$({ tr -cd 'A-Za-z0-9._:-' <"$root/proc/$pid/comm"; } 2>/dev/null)
			pod=$(sed -n 's/.*pod\([0-9a-f]\{8\}[-_][0-9a-f]\{4\}[-_][0-9a-f]\{4\}[-_][0-9a-f]\{4\}[-_][0-9a-f]\{12\}\).*/\1/p' \
				"$root/proc/$pid/cgroup" 2>/dev/null | sed -n 1p | tr _ -)
			say h "$pid" "$comm" "$pod" "$what"
		done
fi

# --- the driver on disk

for file in /bin/sh /sbin/modprobe /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 /lib64/ld64.so.2; do
	look "$file" program
done
for directory in $(printf '%s' "$path" | tr : ' ') $elsewhere; do
	command_at "$directory/nvidia-smi"
done
look /usr/bin/nvidia-uninstall
look /var/lib/nvidia/log
for directory in /etc/modprobe.d /run/modprobe.d /usr/local/lib/modprobe.d /usr/lib/modprobe.d /lib/modprobe.d; do
	look "$directory"
	[ -n "$found" ] || continue
	for file in "$root$found"/*.conf; do
		[ -e "$file" ] || [ -h "$file" ] || continue
		look "${file#"$root"}"
		if [ -n "$found" ] && [ -f "$root$found" ] && [ -r "$root$found" ]; then
			say f "$found" -rw-r--r--
			start "$root$found" | sed '/^[ 	]*#/d' | text
		fi
	done
	look "$directory"
done
look "/lib/modules/$kernel"
if [ -n "$found" ]; then
	find "$root$found" \( -name 'nvidia*.ko*' -o -name 'nouveau.ko*' -o -name 'gdrdrv.ko*' -o -name 'nv_peer_mem.ko*' \
		-o -name 'nv-p2p*.ko*' -o -name 'nvgrace*.ko*' -o -name 'mlx5_core.ko*' \) 2>/dev/null |
		while read -r file; do
			say f "${file#"$root"}" -rw-r--r--
		done
	look "/lib/modules/$kernel/modules.alias"
	if [ -n "$found" ] && [ -f "$root$found" ] && [ -r "$root$found" ]; then
		say f "$found" -rw-r--r--
		grep '^alias vfio_pci:' "$root$found" | text
	fi
fi
for file in "$root"/usr/src/nvidia-[0-9]*; do
	[ -d "$file" ] && say d "${file#"$root"}"
done
look /etc/ld.so.conf text
look /etc/ld.so.conf.d
if [ -n "$found" ]; then
	for file in "$root$found"/*.conf; do
		[ -f "$file" ] && look "${file#"$root"}" text
	done
fi
multiarch='/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib/aarch64-linux-gnu /usr/lib/aarch64-linux-gnu'
for directory in $multiarch /lib64 /usr/lib64 /lib /usr/lib $(cat "$root"/etc/ld.so.conf "$root"/etc/ld.so.conf.d/*.conf 2>/dev/null | grep '^/'); do
	for file in "$root$directory"/libnvidia-ml.so*; do
		if [ -e "$file" ] || [ -h "$file" ]; then
			look "${file#"$root"}" program
		fi
	done
done

# --- packages

look /var/lib/dpkg/status
if [ -n "$found" ] && [ -r "$root$found" ]; then
	say f "$found" -rw-r--r--
	awk 'BEGIN { RS = ""; FS = "\n" }
		$0 ~ /(^|\n)Package: [^\n]*(nvidia|cuda|gdr|doca|mlnx|ofed|rdma|ibverbs|nv-peer|nvlsm)/ {
			for (i = 1; i <= NF; i++) if ($i ~ /^(Package|Status|Version|Architecture): /) print $i
			print ""
		}' "$root$found" | text
fi
if [ -x "$root/usr/bin/rpm" ] || [ -x "$root/bin/rpm" ]; then
	if [ -z "$root" ]; then
		rpm -qa --qf 'p\t%{NAME}\t%{VERSION}-%{RELEASE}\n' 2>/dev/null
	elif [ "$(id -u)" = 0 ]; then
		PATH=$path chroot "$root" rpm -qa --qf 'p\t%{NAME}\t%{VERSION}-%{RELEASE}\n' 2>/dev/null
	else
		say n "rpm's packages cannot be listed without root"
	fi | grep -E '^[^n]|cuda|nvidia|gdr|doca|mlnx|ofed|rdma|ibverbs|nv-peer|nvlsm'
fi

# --- what nvidia-smi says

if [ "$may_run" = no ]; then
	say n 'nvidia-smi was not asked: --no-run'
elif ! [ -e "$root/sys/module/nvidia/refcnt" ]; then
	say n 'nvidia-smi was not asked: the nvidia module is not loaded, and asking would load it'
elif [ -n "$root" ] && [ "$(id -u)" != 0 ]; then
	say n 'nvidia-smi was not asked: that needs root'
else
	limit=''
	timeout 60 true 2>/dev/null && limit='timeout 60'
	said=$(
		# shellcheck disable=SC2086 # words
		if [ -n "$root" ]; then
			PATH=$path $limit chroot "$root" nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null </dev/null
		else
			PATH=$path $limit nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null </dev/null
		fi
		printf 'x%s' $?
	)
	say a "${said##*x}"
	printf '%s\n' "${said%x*}" | text
fi
say end
