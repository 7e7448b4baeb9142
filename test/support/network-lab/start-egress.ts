// Starts the egress process and the resolver of a lab's restricted machines.

import type { ChildProcess } from 'node:child_process'
import type { EgressProcesses } from './egress-processes.ts'
import { DNS_PORT, EGRESS_GID, EGRESS_PORTS, type Lab, NEIGHBOUR } from './lab.ts'
import { keptForStreams, streamFlags } from '../../../src/supervisor/process-command.ts'
import { startIn } from './start-in.ts'

type Given = Pick<EgressProcesses, 'stateDir'> &
  Partial<Pick<EgressProcesses, 'ports' | 'roots' | 'siblings'>>

/** Returns the process, once it is ready. */
export async function startEgressIn(
  lab: Lab,
  { stateDir, ports = EGRESS_PORTS, roots = '', siblings = {} }: Given,
): Promise<ChildProcess> {
  const { rules, names } = lab.sockets
  const given: EgressProcesses = {
    address: lab.gateway,
    ports,
    dnsPort: DNS_PORT,
    sockets: { rules: rules.path, names: names.path },
    nameserver: NEIGHBOUR,
    stateDir,
    roots,
    siblings,
  }
  const as = ['setpriv', `--regid=${EGRESS_GID}`, '--clear-groups']
  const [child] = await startIn(lab.host, 'egress-processes', given, {
    as,
    flags: streamFlags,
    env: keptForStreams,
  })
  return child
}
