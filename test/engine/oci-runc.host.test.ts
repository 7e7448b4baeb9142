// The engine of this host with runc, against the whole contract.

import { describeHostContract } from './oci-host-contract.ts'

describeHostContract('runc')
