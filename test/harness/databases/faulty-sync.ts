// Preloaded into a service: a disk that fails or hangs. The file that FAULTY_SYNC names says how, while it exists: a sync
// fails if it contains "fail", and waits until the file is gone if it contains "hang". If it is a named pipe, a thread of Node's
// pool hangs in the system until something is written to the pipe.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const order = process.env['FAULTY_SYNC']!
const real = fs.fdatasync

function sync(file: number, done: (error?: Error | null) => void): void {
  if (fs.existsSync(order) && fs.statSync(order).isFIFO()) {
    fs.open(order, 'r', () => {})
    return
  }
  const ordered = fs.existsSync(order) ? fs.readFileSync(order, 'utf8') : ''
  if (ordered === 'fail') setImmediate(done, Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }))
  else if (ordered === 'hang') setTimeout(sync, 20, file, done)
  else real(file, done)
}

fs.fdatasync = sync as typeof fs.fdatasync
syncBuiltinESMExports()
