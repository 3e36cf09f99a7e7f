// Is the process alive, is it ready: the same answers on the public port and on the admin port, which stays reachable while
// the public one is overloaded.
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { jsonContent } from './answer.ts'
import type { Answer } from './call.ts'
import type { Readiness } from './readiness.ts'

export type Health = Record<'/livez' | '/readyz', () => Answer | Promise<Answer | Refusal>>

export function createHealth(readiness: Readiness): Health {
  return {
    // Touches nothing: it answers as long as the process can.
    '/livez': () => json({ status: 'alive' }),
    '/readyz': async () => {
      const reason = await readiness()
      return reason === undefined ? json({ status: 'ready' }) : notReady(reason)
    },
  }
}

function notReady(message: string): Refusal {
  return new Refusal('service_unavailable', message, ['Retry-After', String(RETRY_AFTER.notReady)])
}

function json(value: object): Answer {
  return { status: 200, ...jsonContent(JSON.stringify(value)) }
}
