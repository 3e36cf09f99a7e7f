// Rehearsed failures, on staging only: the header Petstore-Rehearse makes a request fail in a chosen way, so that a client's
// retries can be tested against the real service. Production does not have this step.
import { setTimeout } from 'node:timers/promises'
import { Refusal } from '../../contract/errors.ts'
import { quote } from '../../contract/json.ts'
import { LONGEST_REHEARSED_DELAY_MS, RETRY_AFTER } from '../../contract/limits.ts'
import type { OperationCall, Step } from '../call/call.ts'
import { whenLeft } from '../connections/client-left.ts'
import { dueResponse } from '../connections/request-order.ts'

const RETRY = ['Retry-After', String(RETRY_AFTER.rehearsed)]
const UNAVAILABLE = new Refusal(
  'service_unavailable',
  'The database is unavailable: a rehearsal, as requested by Petstore-Rehearse.',
  RETRY,
)
/** Each delay keeps a connection. */
const DELAYS_MOST = 100
const TOO_MANY_DELAYS = new Refusal(
  'rate_limited',
  `At most ${DELAYS_MOST} requests can rehearse a delay at a time.`,
  RETRY,
)
const LIMITED = new Refusal('rate_limited', 'Too many requests: a rehearsal, as requested by Petstore-Rehearse.', RETRY)

export const rehearse: Step = (call) => {
  const wanted = call.request.headers['petstore-rehearse']
  // An empty header asks for nothing: some tools send headers that the user left empty.
  if (!wanted) return undefined
  call.rehearsed = true
  switch (wanted) {
    case '503':
      return UNAVAILABLE
    case '429':
      return LIMITED
    case 'disconnect':
      // Cuts the connection before the operation runs. The refusal is only logged and counted.
      call.disconnects = true
      return UNAVAILABLE
    case 'disconnect-after-commit':
      call.disconnects = true
      return undefined
    default: {
      const ms = delayOf(String(wanted))
      return ms === undefined ? unknown(String(wanted)) : delay(call, ms)
    }
  }
}

let delays = 0

/** A client that has gone is not waited for: its request goes on at once, as one of a client that gave up does in production. */
async function delay({ request }: OperationCall, ms: number): Promise<Refusal | undefined> {
  if (delays === DELAYS_MOST) return TOO_MANY_DELAYS
  delays += 1
  const response = dueResponse(request.socket)
  const signal = response && whenLeft(response)
  await setTimeout(ms, undefined, signal && { signal }).catch(() => undefined)
  delays -= 1
  return undefined
}

/** Returns the milliseconds of `delay=2s` or `delay=250ms`, or undefined if the text is anything else or the delay is too long. */
function delayOf(text: string): number | undefined {
  const [, digits, unit] = /^delay=([0-9]{1,5})(ms|s)$/.exec(text) ?? []
  const ms = Number(digits) * (unit === 's' ? 1000 : 1)
  return ms <= LONGEST_REHEARSED_DELAY_MS ? ms : undefined
}

function unknown(value: string): Refusal {
  const longest = LONGEST_REHEARSED_DELAY_MS / 1000
  const allowed = `503, 429, delay=2s (at most ${longest} s), disconnect or disconnect-after-commit`
  return new Refusal('invalid_rehearsal', `The Petstore-Rehearse header must be ${allowed}, got ${quote(value)}.`)
}
