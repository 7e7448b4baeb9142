// The gVisor that Berth builds: of which sources, with which Go. A newer one is a change of this file, go.mod and go.sum, and is
// measured first: `npm test` runs on it.

export const GVISOR = 'gvisor.dev/gvisor'

/** What it says with --version: of its own, since it differs from the released one by the patches beside this file. */
export const BUILT_VERSION = 'release-20260905.0-berth3'

/** All builds of a machine are here, each in a directory of its name: a unit may still run on an earlier one. */
export const BUILDS = '/usr/local/lib/berth/runsc'

/** Where the pinned one is once it is built. */
export const BUILT_RUNSC = `${BUILDS}/${BUILT_VERSION}/runsc`

/** The oldest Go that builds it. Where the machine has none, this one is fetched from the module proxy. */
export const GO = '1.26.3'

/** Of Node's names for processors: Go's name, and the SHA-256 of the archive with its Go. */
export const goArchives: Partial<Record<string, { arch: string; sha256: string }>> = {
  x64: { arch: 'amd64', sha256: '31905a748926ceb42bda1b1c490508b8734fb4e1492c6187b4d52ea1ba722b15' },
  arm64: { arch: 'arm64', sha256: 'b7c1b9093336a1b4970eb76c02673ea4b62ec1470c05f62fb758046024c474b4' },
}
