// Runs commands of a document as they stand there, in a shell in which the drill plays the programs that start and stop instances.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'

export interface OperatorShell {
  folder: string
  env?: Record<string, string>
  /** The programs that the drill plays, such as systemctl. */
  played: readonly string[]
  /** Does what one of them is asked for; `words` are its arguments. */
  play: (words: string) => Promise<void>
}

/** Runs a script; rejects if it fails. Does not block, because clients are at work meanwhile. */
export async function runAsOperator(script: string, { folder, env, played, play }: OperatorShell): Promise<void> {
  const server = createServer((request, response) => {
    void text(request)
      .then(play)
      .then(
        () => response.end(),
        (error: unknown) => response.writeHead(500).end(String(error)),
      )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const programs = mkdtempSync(join(folder, 'programs-'))
  const program = `#!/bin/sh\nexec curl --fail-with-body -sS -d "$*" http://127.0.0.1:${(server.address() as AddressInfo).port}\n`
  for (const name of played) writeFileSync(join(programs, name), program, { mode: 0o755 })
  const surroundings = { ...process.env, ...env }
  try {
    await promisify(execFile)('sh', ['-e', '-c', script], {
      cwd: folder,
      env: { ...surroundings, PATH: `${programs}:${surroundings['PATH']}` },
    })
  } finally {
    server.close().closeAllConnections()
  }
}
