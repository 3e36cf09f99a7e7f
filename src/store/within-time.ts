// Bounds how long a caller waits for a promise.

/** No answer came in time. Whether the call has taken effect, or still will, is unknown. */
export class Overdue extends Error {
  override name = 'Overdue'
  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`)
  }
}

/** Rejects with `Overdue` if the promise has not settled in time; ignores its later result or rejection. */
export function withinTime<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Overdue(limitMs)), limitMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
