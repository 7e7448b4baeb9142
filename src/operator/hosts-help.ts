// What `npm run hosts -- --help` prints: of one command, or of all.

type Topic = { verbs: string[]; usage: string; says: string[]; next: string }

const topics: Topic[] = [
  {
    verbs: ['list'],
    usage: 'list',
    says: [
      'Each host: its state, how many units it has, when it was last seen, and what to do. Berth must be running.',
    ],
    next: 'The last column says what to do about each host.',
  },
  {
    verbs: ['log'],
    usage: 'log [NAME]',
    says: ['What happened to them: who was away, came back, was drained, given up or removed, and when.'],
    next: 'The newest hundred, the newest at the end.',
  },
  {
    verbs: ['drain', 'undrain'],
    usage: 'drain NAME | undrain NAME',
    says: [
      'A host that is drained takes no units of new teams, and no new units of its own teams; what is there goes on,',
      'sleeps and wakes.',
    ],
    next: 'A drained host can be removed once its units are destroyed. undrain lets it take units again.',
  },
  {
    verbs: ['lost'],
    usage: 'lost NAME',
    says: [
      'Only you know that a host will not come back: its units have lost their runs, and their disks are there alone.',
    ],
    next: 'Their teams can then destroy these units, and remove takes the host from the list. If it comes back, join it again.',
  },
  {
    verbs: ['remove'],
    usage: 'remove NAME [--destroy-units]',
    says: [
      'A host without units, drained or lost, or one that has joined. With --destroy-units it first destroys all units of a',
      'host that is lost, whose disks then are removed if it ever joins again.',
    ],
    next: 'Then end Berth on that machine; its data directory can be deleted, or join with another token.',
  },
  {
    verbs: ['join-token'],
    usage: 'join-token NAME ADDRESS:PORT',
    says: [
      'Prints how the machine NAME joins, and waits for it there, at an address of this machine: for an hour, and once.',
      'Berth must be running with BERTH_HOSTS_ADDRESS, which this command needs too.',
    ],
    next: 'list shows the host, and within seconds that it is ready. A machine that has joined before does so again by its name.',
  },
  {
    verbs: ['check'],
    usage: 'check NAME ADDRESS:PORT',
    says: ['Whether that engine answers this machine, and if not, what to look at.'],
    next: 'It changes nothing.',
  },
  {
    verbs: ['reclaim'],
    usage: 'reclaim NAME',
    says: [
      'Only you know that no other server is meant to call a host that another one has called, as after a restored',
      'backup: this server then restarts, and the host follows it.',
    ],
    next: 'Units go on. The other hosts follow, too.',
  },
  {
    verbs: ['certificate'],
    usage: 'certificate NAME FILE',
    says: [
      'Writes key and certificate for a Berth whose engine is to answer over TLS beside its own server. A host needs none.',
    ],
    next: 'Move FILE to that machine, as BERTH_ENGINE_CERTIFICATE beside BERTH_ENGINE_TLS. It is for a year; doctor there says when it ends.',
  },
]

/** The text for one command, or for all if there is none of that name. */
export function helpOf(verb: string | undefined): string {
  const topic = topics.find(({ verbs }) => verb !== undefined && verbs.includes(verb))
  if (topic) return `${textOf(topic)}\n\n  ${topic.next}`
  const all = topics.map(textOf)
  return ['The hosts of this Berth, and machines whose engines answer over the network.', ...all].join('\n\n')
}

function textOf({ usage, says }: Topic): string {
  return [`  npm run hosts -- ${usage}`, ...says.map((line) => `      ${line}`)].join('\n')
}
