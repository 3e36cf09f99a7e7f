// Imports a file as petstore import does, and is killed at an exact point: when as many rows are done as the third argument says.
import { petstore } from '../harness/programs/in-process-command.ts'

const [database = '', file = '', rows = ''] = process.argv.slice(2)

await petstore(['import', file], {
  env: { DATABASE_URL: database },
  isTTY: true,
  onReport(text) {
    if (text.includes(` ${rows} of `)) process.kill(process.pid, 'SIGKILL')
  },
})
