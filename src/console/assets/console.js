// Adds comfort where scripts run; every page works without it.

/** Adds a copy button beside everything that is meant to be copied. */
for (const source of document.querySelectorAll('[data-copy], [data-copy-field]')) {
  if (!navigator.clipboard) break
  const isField = source.hasAttribute('data-copy-field')
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'button quiet copy'
  button.textContent = 'Copy'
  button.setAttribute('aria-label', isField ? 'Copy the key' : 'Copy the line')
  const said = document.createElement('span')
  said.className = 'visually-hidden'
  said.setAttribute('role', 'status')
  button.addEventListener('click', () => void copy())

  async function copy() {
    try {
      await navigator.clipboard.writeText(isField ? source.value : source.textContent)
      button.textContent = 'Copied'
      said.textContent = 'Copied'
    } catch {
      button.textContent = 'Press Ctrl+C'
      if (isField) source.select()
      else getSelection().selectAllChildren(source)
    }
    setTimeout(() => {
      button.textContent = 'Copy'
      said.textContent = ''
    }, 2000)
  }

  const place = source.closest('pre') ?? source
  const frame = document.createElement('div')
  frame.className = place === source ? 'copy-line' : 'copy-block'
  place.replaceWith(frame)
  frame.append(place, button, said)
}

/** Selects the whole key when its field is focused, ready to copy. */
for (const input of document.querySelectorAll('[data-copy-field]'))
  input.addEventListener('focus', () => input.select())

/** Sends a form only once, even if its button is pressed twice; the server would not process it twice either. */
for (const form of document.querySelectorAll('form[method="post"]')) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault()
    form.dataset.sent = 'yes'
  })
}
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent
})

/** Asks every two seconds, for five minutes, whether the first request with a new key has arrived. */
const waiting = document.querySelector('[data-first-request]')
if (waiting) void waitForFirstRequest(150)

async function waitForFirstRequest(tries) {
  const response = await fetch(waiting.dataset.firstRequest).catch(() => undefined)
  const page = response?.ok ? new DOMParser().parseFromString(await response.text(), 'text/html') : undefined
  const found = page?.querySelector('[data-first-request].good')
  if (found) {
    waiting.textContent = found.textContent
    waiting.className = found.className
  } else if (tries > 0) setTimeout(() => void waitForFirstRequest(tries - 1), 2000)
}

/** Puts the focus on the search by `/`, as in other lists. */
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target.matches('input, select, textarea')) return
  const search = document.querySelector('[role="search"] input')
  if (search) event.preventDefault()
  search?.focus()
})

/** Closes an open menu by Escape, which leaves the focus on its summary, and by a click or a focus outside of it. */
for (const menu of document.querySelectorAll('details.menu')) {
  menu.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !menu.open) return
    menu.open = false
    menu.querySelector('summary').focus()
  })
  for (const type of ['click', 'focusin'])
    document.addEventListener(type, ({ target }) => {
      if (!menu.contains(target)) menu.open = false
    })
}

/** Shows times relative to now, or as a local date; the full local time is for hover and for screen readers. */
const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]
for (const time of document.querySelectorAll('time[data-local]')) {
  const at = new Date(time.dateTime)
  const passed = Date.now() - at
  const [unit, ms] = UNITS.find(([, length]) => passed >= length) ?? []
  const isDate = time.dataset.local === 'day' || passed >= 14 * 86_400_000
  const past = unit ? relative.format(-Math.floor(passed / ms), unit) : 'just now'
  const said = document.createElement('span')
  said.className = 'visually-hidden'
  time.title = full.format(at)
  said.textContent = `, ${time.title}`
  time.replaceChildren(isDate ? date.format(at) : past, said)
}
