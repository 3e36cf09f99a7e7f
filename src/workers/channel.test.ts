// Calls between two processes: each is answered once, and nothing of it stays.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Channel } from './channel.ts'

type Theirs = { echo: (value: number) => number; fail: () => never; hang: () => Promise<void> }

const PROGRAM = `
  import { Channel } from ${JSON.stringify(new URL('channel.ts', import.meta.url).href)}
  new Channel(process, {
    echo: (value) => value,
    fail: () => { throw new Error('as asked') },
    hang: () => new Promise(() => {}),
  })`

/** Another process, and the channel to it. */
function startOther() {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  const channel = new Channel<Theirs>(child, {})
  return { child, channel, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Makes this many calls and waits for them; returns what is left of them in memory. */
async function leftOf(count: number, call: () => Promise<unknown>): Promise<number> {
  const calls = await Promise.all(
    Array.from({ length: count }, async () => {
      const promise = call()
      await promise.catch(() => {})
      return new WeakRef(promise)
    }),
  )
  await setImmediate()
  collectGarbage()
  return calls.filter((weak) => weak.deref() !== undefined).length
}

describe('A call to another process', () => {
  it('is forgotten when it is answered, with a result or a failure', async () => {
    using other = startOther()
    assert.equal(await other.channel.call('echo', 7), 7)
    await assert.rejects(other.channel.call('fail'), { message: 'as asked' })
    assert.ok((await leftOf(500, () => other.channel.call('echo', 7))) < 10)
    assert.ok((await leftOf(500, () => other.channel.call('fail'))) < 10)
  })

  it('gets its own result, also beside others and one that is never answered', async () => {
    using other = startOther()
    const unanswered = assert.rejects(other.channel.call('hang'), /has ended/)
    const values = [1, 2, 3]
    assert.deepEqual(await Promise.all(values.map((value) => other.channel.call('echo', value))), values)
    other.child.kill('SIGKILL')
    await unanswered
  })

  it('fails when that process ends, and ever after', async () => {
    using other = startOther()
    await other.channel.call('echo', 7)
    const waiting = Array.from({ length: 3 }, () => assert.rejects(other.channel.call('hang'), /has ended/))
    other.child.kill('SIGKILL')
    await Promise.all(waiting)
    await assert.rejects(other.channel.call('echo', 7), /has ended/)
    assert.ok((await leftOf(500, () => other.channel.call('echo', 7))) < 10)
  })
})
