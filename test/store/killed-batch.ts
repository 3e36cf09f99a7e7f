// Works on a batch as the service does, and is killed in the middle of a slice, after as many slices as the third argument says.
import { readConfig } from '../../src/config.ts'
import { openStore } from '../../src/store/opening/open-store.ts'

const [database = '', id = '', slices = ''] = process.argv.slice(2)
const { batches } = await openStore(readConfig({ database }, {}).database)
const author = { at: Date.now(), accountId: 'acct_1', via: 'console' }

for (let nth = 0; nth < Number(slices); nth += 1) await batches.advance(BigInt(id), author)
void batches.advance(BigInt(id), author)
setImmediate(() => process.kill(process.pid, 'SIGKILL'))
