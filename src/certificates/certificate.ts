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

/** True after two thirds of the lifetime, so that renewal can fail for a while without an outage. */
export function isDue({ validFromDate, validToDate }: X509Certificate, now: Date): boolean {
  const [fromMs, toMs] = [validFromDate.getTime(), validToDate.getTime()]
  return now.getTime() > fromMs + ((toMs - fromMs) * 2) / 3
}

export function hasEnded({ validToDate }: X509Certificate, now: Date): boolean {
  return now.getTime() > validToDate.getTime()
}
