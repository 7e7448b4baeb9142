// The real engine with runc against the whole contract.

import { describeHostContract } from './oci-host-contract.ts'

describeHostContract('runc')
