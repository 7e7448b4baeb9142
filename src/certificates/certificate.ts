// Reads a certificate in PEM.

import { X509Certificate } from 'node:crypto'

/** Returns the first certificate, or null if there is none that can be read. */
export function readCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem)
  } catch {
    return null
  }
}

/** After this part of the lifetime: renewal can then fail for a while without an outage. */
const DUE_AFTER = 2 / 3

/** `afterPart`: of the lifetime. */
export function isDue(
  { validFromDate, validToDate }: X509Certificate,
  now: Date,
  afterPart = DUE_AFTER,
): boolean {
  const [fromMs, toMs] = [validFromDate.getTime(), validToDate.getTime()]
  return now.getTime() > fromMs + (toMs - fromMs) * afterPart
}

/** Up to a thirtieth of the lifetime later, so that certificates of one day are not all renewed at once. */
export function isDueInTurn(certificate: X509Certificate, now: Date): boolean {
  const spread = Number.parseInt(certificate.serialNumber.slice(-4), 16) / 0xffff
  return isDue(certificate, now, DUE_AFTER + spread / 30)
}

export function hasEnded({ validToDate }: X509Certificate, now: Date): boolean {
  return now.getTime() > validToDate.getTime()
}
