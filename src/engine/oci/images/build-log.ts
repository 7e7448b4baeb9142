// What a caller may read of a build of an image: names of packages and Debian's own steps. Addresses of this host's mirrors
// and proxies, its paths and everything else stay with the operator.

const shown: readonly [line: RegExp, said: (match: RegExpExecArray) => string][] = [
  [/^I: running apt-get update/, () => 'Reading the lists of packages'],
  [/^Need to get ([\d.,]+ [kMG]?B) of archives/, ([, size]) => `Packages to download: ${size}`],
  // Of a list of packages there is no version.
  [
    /^Get:\d+ \S+ \S+ \S+ ([a-z0-9][a-z0-9+.-]*) \S+ ([\w.+~:-]+) \[([\d.,]+ [kMG]?B)\]/,
    ([, name, version, size]) => `Downloading ${name} ${version} (${size})`,
  ],
  [/^I: extracting archives/, () => 'Extracting the essential packages'],
  [/^I: installing essential packages/, () => 'Installing the essential packages'],
  [/^I: installing remaining packages/, () => 'Installing the other packages'],
  [
    /^(Unpacking|Setting up) ([a-z0-9][a-z0-9+.:-]*) \(([\w.+~:-]+)\)/,
    ([, does, name, version]) => `${does} ${name} ${version}`,
  ],
  [/^I: cleaning package lists/, () => 'Cleaning up'],
]

/** Null: nothing of it is for callers. */
export function buildLogLine(line: string): string | null {
  for (const [pattern, say] of shown) {
    const match = pattern.exec(line)
    if (match) return say(match)
  }
  return null
}
