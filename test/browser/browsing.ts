// A test in a real browser: a running service, pages of a fresh profile, and a watch over what they ask for and say.
import assert from 'node:assert/strict'
import { after, afterEach, before, describe } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from '@playwright/test'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { PASSWORD, type Petstore, type PetstoreOptions, startPetstore } from '../harness/harness.ts'
import { findChromium, launchChromium } from './chromium.ts'

export interface Browsing {
  petstore: Petstore
  /** A page in a profile of its own. What it does wrong fails the test that calls `assertClean`. */
  open(options?: BrowserContextOptions): Promise<Page>
  /** The same, signed in: to the service's own account, unless another one is named. */
  openSignedIn(options?: BrowserContextOptions, email?: string, password?: string): Promise<Page>
  /** No request to another host, no policy violation, no error in the console, on any page so far. */
  assertClean(): void
}

/** Like `describe`, where a Chromium is found; else one line says that these tests were left out. */
export function describeInBrowser(name: string, options: PetstoreOptions, tests: (browsing: Browsing) => void): void {
  const executable = findChromium()
  if (executable === undefined) {
    process.stdout.write(`Left out, since no Chromium was found (name one with CHROMIUM): ${name}\n`)
    return
  }
  describe(name, { concurrency: false }, () => {
    const wrong: string[] = []
    let petstore: Petstore
    let browser: Browser
    before(async () => {
      petstore = await startPetstore(options)
      browser = await launchChromium(executable)
    })
    // A page that stays open goes on running its scripts.
    afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))
    after(async () => {
      await browser.close()
      await petstore[Symbol.asyncDispose]()
    })

    const open = async (contextOptions?: BrowserContextOptions) => {
      const viewport = { width: 1280, height: 900 }
      const context = await browser.newContext({ baseURL: petstore.url, viewport, ...contextOptions })
      const page = await context.newPage()
      page.setDefaultTimeout(120_000)
      watch(page, petstore.url, wrong)
      return page
    }
    tests({
      get petstore() {
        return petstore
      },
      open,
      async openSignedIn(contextOptions, email = petstore.account.email, password = PASSWORD) {
        const client = new ConsoleClient(petstore.url)
        assert.equal((await client.signIn(email, password)).status, 303)
        const page = await open(contextOptions)
        const cookies = [...client.cookies].map(([cookie, value]) => ({ name: cookie, value, url: petstore.url }))
        await page.context().addCookies(cookies)
        return page
      },
      assertClean() {
        assert.deepEqual(wrong, [])
      },
    })
  })
}

function watch(page: Page, url: string, wrong: string[]): void {
  page.on('request', (request) => {
    const address = request.url()
    if (!address.startsWith(`${url}/`) && !/^(?:data|blob):/.test(address)) wrong.push(`asked another host: ${address}`)
  })
  page.on('pageerror', (error) => wrong.push(`threw: ${error.message}`))
  page.on('console', (message) => {
    // A page that is refused on purpose is told in the browser's console, too.
    const refused = message.text().startsWith('Failed to load resource: the server responded with a status of 4')
    if ((message.type() === 'error' || message.type() === 'warning') && !refused) wrong.push(`said: ${message.text()}`)
  })
}

export async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.goto('/sign-in')
  await page.getByLabel('Email address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('/animals')
}

/** Generates a key, and gives its secret. */
export async function generateKey(page: Page, name: string): Promise<string> {
  await page.goto('/keys/new')
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Generate key' }).click()
  await page.getByRole('heading', { name: 'Your new key' }).waitFor()
  return page.getByLabel('API key').inputValue()
}
