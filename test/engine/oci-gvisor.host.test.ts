// The real engine with gVisor against the whole contract.

import { describeHostContract } from './oci-host-contract.ts'

describeHostContract('gvisor')
