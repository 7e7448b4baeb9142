// Debian's SSH server in the internet of a lab, on the files of an image, with a git repository in it. What it writes is in
// memory, and its mounts are gone with it.

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** As a client names it. */
export const SSH_REPOSITORY = '/srv/thing.git'

const SERVE = `
directory=$(mktemp -d) && mount -t tmpfs none "$directory" && trap 'umount -l "$directory"; rmdir "$directory"' EXIT
cd "$directory" && mkdir upper work root
mount -t overlay none -o "lowerdir=$1,upperdir=upper,workdir=work" root
mount --rbind /dev root/dev
mkdir -p root/root/.ssh root/run/sshd && printf '%s\\n' "$2" >root/root/.ssh/authorized_keys
chroot root sh -euc '
  ssh-keygen -qA
  git init --quiet --bare ${SSH_REPOSITORY}
  cd ${SSH_REPOSITORY}
  as="-c user.name=x -c user.email=x@example.com"
  git update-ref refs/heads/main "$(git $as commit-tree -m first "$(git hash-object -w -t tree /dev/null)")"'
setsid chroot root /usr/sbin/sshd -D -e -o "ListenAddress=$3" -o UsePAM=no -o StrictModes=no & server=$!
cat >/dev/null
kill -- -$server
`

/**
 * Serves until `close`.
 *
 * @param rootfs Of an image with `openssh-server` and `git`, which is only read.
 * @param publicKey Of the client that is let in, as root.
 */
export async function startSshServer(
  namespace: string,
  { rootfs, publicKey, address }: { rootfs: string; publicKey: string; address: string },
): Promise<{ close: () => Promise<void> }> {
  const inside = ['unshare', '--mount', 'sh', '-euc', SERVE, 'sh', rootfs, publicKey, address]
  const child = spawn('nsenter', [`--net=${namespace}`, ...inside], { stdio: ['pipe', 'ignore', 'pipe'] })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  await listening(child)
  return {
    close: async () => {
      child.stdin?.end()
      await ended
    },
  }
}

async function listening(child: ChildProcess): Promise<void> {
  const said: string[] = []
  if (!child.stderr) throw new Error('the server has no output')
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line)
    if (line.includes('Server listening')) break
  }
  child.stderr.resume()
  if (!said.some((line) => line.includes('Server listening'))) throw new Error(said.join('\n'))
}
