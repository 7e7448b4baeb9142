// `npm run doctor`: prints one line for each check of this host, with advice if something is missing.

import type { Config } from '../config.ts'
import { print } from '../lib/terminal.ts'
import { boundsChecks } from './bounds.ts'
import { type Check, type Finding, runCheck } from './check.ts'
import { authorityCheck, engineCertificateCheck } from './engine-certificate.ts'
import { gatewayWorkersCheck } from './gateway-workers.ts'
import { hostChecks, serverChecks, tenancyChecks } from './host.ts'
import { isolationChecks } from './isolation.ts'
import { kernelChecks } from './kernel.ts'
import { networkChecks, portsCheck } from './network.ts'
import { programChecks } from './programs.ts'

type Section = { title: string; checks: Check[] }

const sections: Section[] = [
  { title: 'Host', checks: [...hostChecks, portsCheck, gatewayWorkersCheck] },
  { title: 'Kernel', checks: kernelChecks },
  { title: 'Programs', checks: programChecks },
  { title: 'Isolation', checks: isolationChecks },
  { title: 'Network', checks: [...networkChecks, engineCertificateCheck, authorityCheck] },
  { title: 'Between tenants', checks: tenancyChecks },
  { title: 'Bounds', checks: boundsChecks },
]

/** Of a machine with BERTH_ROLE=server, which runs no units. */
const sectionsOfServer: Section[] = [
  { title: 'Host', checks: [...serverChecks, portsCheck] },
  { title: 'Network', checks: [authorityCheck] },
  { title: 'Bounds', checks: boundsChecks },
]

const marks = { ok: ' ok ', warn: 'warn', fail: 'FAIL' } as const satisfies Record<Finding['state'], string>

/** Returns the exit code: 1 if Berth could not run here. */
export async function runDoctor(config: Config): Promise<number> {
  const count = { ok: 0, warn: 0, fail: 0 }
  for (const { title, checks } of config.role === 'server' ? sectionsOfServer : sections) {
    print(`\n${title}`)
    for (const check of checks) {
      const finding = await runCheck(check, config)
      count[finding.state] += 1
      print(`  ${marks[finding.state]}  ${check.name}: ${finding.detail}`)
      if (finding.state !== 'ok') print(`        ${finding.advice}`)
    }
  }
  print(`\n${count.ok} ok, ${count.warn} warnings, ${count.fail} to fix before Berth can run here`)
  return count.fail === 0 ? 0 : 1
}
