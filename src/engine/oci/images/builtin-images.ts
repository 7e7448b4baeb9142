// What each built-in image is made of (builtin.ts); databases and web servers are in builtin-servers.ts.

import { type BuiltIn, entrypointPath, type NpmPackage } from './builtin.ts'
import { servers } from './builtin-servers.ts'

/** Keeps a unit without a server alive, so that commands can run in it. */
const idle = ['sleep', 'infinity']

/** An agent's own user beside root. */
const makeUser = 'useradd --create-home --uid 1000 --user-group --groups sudo --shell /bin/bash user'

/** The unit is the environment: its packages belong to no one else. */
const ownPackages = {
  PIP_BREAK_SYSTEM_PACKAGES: '1',
  PIP_ROOT_USER_ACTION: 'ignore',
  PYTHONUNBUFFERED: '1',
}

/** That of this installation, for programs that Debian's is too old for. It comes first in the path. */
const node = { '/usr/local/bin/node': { name: `node-linux-${process.arch}`, path: 'bin/node' } }

/** Debian's npm is 335 packages, half of an image and of the time that it takes to build. */
const nodeAndNpm = { ...node, '/usr/local/lib/node_modules/npm': { name: 'npm' } }
const linkNpm = ['npm', 'npx']
  .map((name) => `ln -s ../lib/node_modules/npm/bin/${name}-cli.js /usr/local/bin/${name}`)
  .join(' && ')

/** From any directory, also by `import`, which looks upwards for node_modules alone. */
function fromAnywhere(names: string[]): Record<string, NpmPackage> {
  return Object.fromEntries(names.map((name) => [`/node_modules/${name}`, { name }]))
}

/** What the library of hosted agents' workers needs itself. */
const ofAnthropic = ['@opentelemetry/api', 'standardwebhooks', '@stablelib/base64', 'fast-sha256']

/** Where the image for code has its programs. */
const interpreter = '/usr/local/lib/berth-code'
const partsOfInterpreter =
  'charts contexts jupyter_kernels kernel kernel_output modules python_kernels server small_kernels'
const ofInterpreter = Object.fromEntries(
  partsOfInterpreter.split(' ').map((name) => [`${interpreter}/${name}.py`, `code/${name}.py`]),
)

/** A part of most of the others, which are built on it where it is here. */
export const plainSystem: BuiltIn = {
  name: 'debian',
  version: '12',
  packages: ['ca-certificates', 'curl'],
  cmd: idle,
}

export const builtIns: BuiltIn[] = [
  plainSystem,
  {
    // A machine for an agent to work on: its tools, and a user of its own beside root.
    name: 'base',
    version: '12',
    packages: [
      'bash',
      'ca-certificates',
      'curl',
      'git',
      'iproute2',
      'passwd',
      'procps',
      'python-is-python3',
      'python3',
      'python3-pip',
      'python3-venv',
    ],
    npmPackages: nodeAndNpm,
    prepare: `${makeUser} && ${linkNpm} && ln -s ${entrypointPath} /usr/local/bin/sudo`,
    env: ownPackages,
    cmd: idle,
    script: 'base.sh',
  },
  {
    // Runs code for the API, in kernels that are there before they are asked for (src/domain/units/code.ts).
    name: 'code',
    version: '1',
    packages: [
      'bash',
      'ca-certificates',
      'curl',
      'fonts-dejavu-core',
      'fonts-liberation',
      'git',
      'passwd',
      'procps',
      'python-is-python3',
      'python3',
      'python3-bs4',
      'python3-ipykernel',
      'python3-jupyter-client',
      'python3-lxml',
      'python3-matplotlib',
      'python3-numpy',
      'python3-openpyxl',
      'python3-pandas',
      'python3-pil',
      'python3-pip',
      'python3-requests',
      'python3-scipy',
      'python3-seaborn',
      'python3-sklearn',
      'python3-sympy',
      'python3-tabulate',
      'python3-venv',
      'r-cran-irkernel',
    ],
    npmPackages: nodeAndNpm,
    // The list of fonts takes seconds to make. It is not the home's, so that every user has it.
    prepare:
      `${makeUser} && ${linkNpm} && install -d -m 1777 /var/cache/matplotlib && ` +
      `ln -s ${interpreter}/base /usr/local/bin/sudo && python3 ${interpreter}/modules.py && ` +
      'MPLCONFIGDIR=/var/cache/matplotlib python3 -c "import matplotlib.font_manager"',
    env: { ...ownPackages, MPLCONFIGDIR: '/var/cache/matplotlib' },
    cmd: idle,
    ahead: {
      command: ['env', 'BERTH_AHEAD=1', `${interpreter}/keep`],
      begun: '/run/berth-code/warm',
    },
    script: 'code.sh',
    files: {
      [`${interpreter}/base`]: 'base.sh',
      [`${interpreter}/keep`]: 'code/keep',
      [`${interpreter}/client`]: `code/client-${process.arch}`,
      ...ofInterpreter,
      [`${interpreter}/node_kernel.mjs`]: 'code/node_kernel.mjs',
      [`${interpreter}/bash_kernel.sh`]: 'code/bash_kernel.sh',
    },
  },
  {
    name: 'python',
    version: '3.11',
    packages: ['ca-certificates', 'curl', 'python-is-python3', 'python3', 'python3-pip', 'python3-venv'],
    env: ownPackages,
    cmd: idle,
    script: 'python.sh',
  },
  {
    // What coding agents and hosted agents' workers need beside a shell (docs/guides/hosted-agents.md).
    name: 'agent',
    version: '1',
    packages: [
      'bash',
      'build-essential',
      'ca-certificates',
      'curl',
      'file',
      'git',
      'iproute2',
      'jq',
      'less',
      'openssh-client',
      'passwd',
      'patch',
      'procps',
      'python-is-python3',
      'python3',
      'python3-pip',
      'python3-venv',
      'ripgrep',
      'tmux',
      'unzip',
      'xz-utils',
      'zip',
    ],
    npmPackages: { ...nodeAndNpm, ...fromAnywhere(['@anthropic-ai/sdk', ...ofAnthropic]) },
    files: { '/usr/local/bin/coding-agent': 'agent/coding-agent' },
    // Where agents work. Made by the first command of a session, it costs a small unit of class gvisor 50 ms.
    prepare: `${makeUser} && ${linkNpm} && ln -s ${entrypointPath} /usr/local/bin/sudo && mkdir /workspace`,
    env: ownPackages,
    cmd: idle,
    script: 'base.sh',
  },
  {
    name: 'browser',
    version: '1',
    packages: [
      'bash',
      'ca-certificates',
      'chromium',
      'chromium-sandbox',
      'curl',
      'fonts-dejavu-core',
      'fonts-liberation',
      'fonts-noto-cjk',
      'fonts-noto-color-emoji',
      'passwd',
      'procps',
      'python-is-python3',
      'python3',
      'python3-pip',
      'python3-venv',
    ],
    npmPackages: { ...node, ...fromAnywhere(['playwright-core']) },
    prepare: makeUser,
    files: { '/usr/local/lib/berth-browser/cdp.mjs': 'browser/cdp.mjs' },
    env: ownPackages,
    cmd: ['browser'],
    ports: [9222],
    script: 'browser.sh',
  },
  {
    name: 'docker',
    version: '20.10',
    packages: ['buildah', 'ca-certificates', 'curl', 'docker-compose', 'docker.io', 'iproute2', 'iptables'],
    // The sandbox's kernel has the older interface of the two.
    // A host's overlay, which the unit's own disk is, takes no whiteouts of another one: buildah copies layers instead.
    prepare:
      'update-alternatives --set iptables /usr/sbin/iptables-legacy && mkdir -p /etc/containers && ' +
      'printf "[storage]\\ndriver = \\"vfs\\"\\nrunroot = \\"/run/containers/storage\\"\\ngraphroot = \\"/var/lib/containers/storage\\"\\n" ' +
      '>/etc/containers/storage.conf && rm -rf /var/lib/containers/storage',
    // A build by buildah shares the network and the processes of the unit.
    env: { BUILDAH_ISOLATION: 'chroot' },
    cmd: ['dockerd'],
    script: 'docker.sh',
  },
  {
    name: 'node',
    version: '24',
    packages: ['ca-certificates', 'curl'],
    npmPackages: nodeAndNpm,
    prepare: linkNpm,
    cmd: idle,
    script: 'node.sh',
  },
  {
    // Debian's, for who names it.
    name: 'node',
    version: '18',
    packages: ['ca-certificates', 'curl', 'nodejs', 'npm'],
    cmd: idle,
    script: 'node.sh',
  },
  ...servers,
]

export function findBuiltIn(name: string, tag: string | null): BuiltIn | null {
  return builtIns.find((image) => image.name === name && (tag === image.version || tag === 'latest')) ?? null
}
