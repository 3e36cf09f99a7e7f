// A real Chromium, where this machine has one: named by CHROMIUM, else at a place where packages put it. The headless
// shell comes first: it is the same browser without a window's user interface, at half the processor time.
import { existsSync } from 'node:fs'
import { type Browser, chromium } from '@playwright/test'
import { keptIn } from '../harness/programs/processes.ts'
import { folderUntilExit } from '../harness/programs/command.ts'

const PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  String.raw`C:\Program Files\Google\Chrome\Application\chrome.exe`,
]

/** Keeps it from talking to its maker; a closed network would answer each try with an error. */
const ARGUMENTS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Undefined where there is none. One that was named and is not there is a mistake, not a reason to leave tests out. */
export function findChromium(): string | undefined {
  const named = process.env['CHROMIUM']
  if (!named) return PLACES.find((place) => existsSync(place))
  if (!existsSync(named)) throw new Error(`CHROMIUM names ${named}, which is not there.`)
  return named
}

export function launchChromium(executablePath: string): Promise<Browser> {
  // Chromium's sandbox does not work for root, as in a container.
  const args = process.getuid?.() === 0 ? [...ARGUMENTS, '--no-sandbox'] : ARGUMENTS
  return chromium.launch({ executablePath, args, env: keptIn(folderUntilExit()), headless: true })
}
