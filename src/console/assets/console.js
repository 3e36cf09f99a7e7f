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

/** The row that a step has replaced, and until when its new buttons ignore the second press of a double click. */
let replaced = { row: undefined, until: 0 }
const DOUBLE_CLICK_MS = 600

/** Sends a form only once, even if its button is pressed twice; the server would not process it twice either. A row has its own step. */
addEventListener('submit', (event) => {
  const { target: form, submitter: button } = event
  if ((button?.formMethod || form.method) !== 'post') return
  const row = form.id === 'step' ? button.closest('tr') : undefined
  const sent = row ?? form
  if (sent.dataset.sent || row) event.preventDefault()
  if (row && row === replaced.row && event.timeStamp < replaced.until) return
  if (row && !sent.dataset.sent) void takeStep(row, form, button)
  sent.dataset.sent = 'yes'
})

/** Takes the step of a row without leaving the list: replaces the row, the counts and the words by those of the answer. */
async function takeStep(row, form, button) {
  const body = new URLSearchParams(new FormData(form, button))
  const response = await fetch(button.formAction, { method: 'POST', body }).catch(() => undefined)
  const text = await response?.text().catch(() => undefined)
  if (text === undefined) return sayUnreachable(row)
  const isList = response.ok && new URL(response.url).pathname === location.pathname
  const page = isList && new DOMParser().parseFromString(text, 'text/html')
  const next = page && page.querySelector('tr.fresh')
  // Another page says why the step was not taken, or asks to sign in.
  if (!next && response.redirected) location.assign(response.url)
  if (!next && !response.redirected) {
    const chosen = { type: 'hidden', name: button.name, value: button.value }
    form.append(Object.assign(document.createElement('input'), chosen))
    form.action = button.formAction
    form.submit()
  }
  if (!next) return
  document.querySelector('tr.fresh')?.classList.remove('fresh')
  row.replaceWith(next)
  next.closest('table').dataset.listed = response.url
  showLocalTimes(next)
  replaced = { row: next, until: performance.now() + DOUBLE_CLICK_MS }
  next.querySelector('button').focus({ preventScroll: true })
  for (const id of ['by-status', 'said'])
    document.getElementById(id)?.replaceChildren(...(page.getElementById(id)?.childNodes ?? []))
}

/** Keeps the page, on which the step can be taken again: the server takes it only once. */
function sayUnreachable(row) {
  const problem = row.querySelector('.problem') ?? document.createElement('p')
  Object.assign(problem, { className: 'problem', role: 'alert', textContent: 'No connection. Try again.' })
  row.querySelector('.step-cell').prepend(problem)
  delete row.dataset.sent
}

addEventListener('pageshow', () => {
  for (const sent of document.querySelectorAll('[data-sent]')) delete sent.dataset.sent
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

/** Puts the focus on the first field of an animal's form when Edit opens it. */
const edit = document.querySelector('.edit')
edit?.querySelector('summary').addEventListener('click', () => {
  edit.addEventListener('toggle', () => edit.querySelector('.field input')?.focus(), { once: true })
})

/** The keys of the list, as in other lists, which can be turned off: a user who dictates would press them by speaking. */
const KEYS = { '/': 'Find an animal', n: 'Add one', j: 'Next', k: 'Previous', '?': 'These keys', Escape: 'Close' }
const search = document.querySelector('[role="search"] input')
if (search) addEventListener('keydown', pressKey)

/** Who types on while the list opens presses none of its keys until a pause of half a second. */
let [typedAt, isTypingOn] = [Number(sessionStorage.typed), true]
const watch = () => {
  isTypingOn &&= Date.now() - typedAt < 500
  typedAt = Date.now()
}
addEventListener('keydown', watch, true)
addEventListener('pagehide', () => (sessionStorage.typed = typedAt))

function pressKey(event) {
  if (isTypingOn) return
  const isTyped = event.target.matches('input:not([type="checkbox"]), select, textarea, dialog *')
  if (isTyped || event.ctrlKey || event.metaKey || event.altKey) return
  if (localStorage.getItem('keys') === 'off' && event.key !== '?') return
  const rows = [...document.querySelectorAll('.animals tbody th a')]
  const at = rows.findIndex((row) => row.closest('tr').contains(event.target))
  const found = { '/': search, n: document.querySelector('[aria-keyshortcuts="n"]'), j: rows[at + 1], k: rows[at - 1] }[
    event.key
  ]
  if (found) event.preventDefault()
  if (event.key === '?') showKeys()
  else if (event.key === 'n') found?.click()
  else found?.focus()
}

function showKeys() {
  const dialog = Object.assign(document.createElement('dialog'), { className: 'panel', ariaLabel: 'Keys' })
  const lines = Object.entries(KEYS).map(([key, words]) => `<li><kbd>${key}</kbd> ${words}</li>`)
  dialog.innerHTML = `<ul class="added">${lines.join('')}</ul><form class="actions" method="dialog"><button class="button">Close</button>
    <label><input type="checkbox" ${localStorage.getItem('keys') === 'off' ? '' : 'checked'}> Use these keys</label></form>`
  dialog.addEventListener('close', () => {
    localStorage.setItem('keys', dialog.querySelector(':checked') ? 'on' : 'off')
    dialog.remove()
  })
  document.querySelector('main').append(dialog)
  dialog.showModal()
}

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

/** Makes the days of changes those of the browser's time zone. An entry without a time belongs to the day of the one before. */
const days = [...document.querySelectorAll('.day')]
if (days.length > 0) {
  const long = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' })
  const [today, yesterday] = [0, 1].map((back) => long.format(new Date().setDate(new Date().getDate() - back)))
  let name = days[0].querySelector('h2').textContent
  const byDay = Map.groupBy(document.querySelectorAll('.day li'), (entry) => {
    const time = entry.querySelector(':scope > .quiet-text time')
    return (name = time ? long.format(new Date(time.dateTime)) : name)
  })
  const words = { [today]: 'Today', [yesterday]: 'Yesterday' }
  const local = Array.from(byDay, ([day, entries]) => {
    const section = days[0].cloneNode(true)
    section.querySelector('h2').textContent = words[day] ?? day
    section.querySelector('ol').replaceChildren(...entries)
    return section
  })
  days[0].before(...local)
  for (const day of days) day.remove()
}

/** Shows times relative to now, or as a local date or clock time; the full local time is for hover and for screen readers. */
const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' })
const short = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
showLocalTimes(document)

function showLocalTimes(within) {
  for (const time of within.querySelectorAll('time[data-local]')) showLocalTime(time)
}

function showLocalTime(time) {
  const at = new Date(time.dateTime)
  const now = new Date()
  const passed = now - at
  const [unit, ms] = UNITS.find(([, length]) => passed >= length) ?? []
  const isDate = time.dataset.local === 'day' || passed >= 14 * 86_400_000
  const past = unit ? relative.format(-Math.floor(passed / ms), unit) : 'just now'
  const said = document.createElement('span')
  said.className = 'visually-hidden'
  time.title = full.format(at)
  said.textContent = `, ${time.title}`
  const isToday = at.toDateString() === now.toDateString()
  const day = isToday ? clock : at.getFullYear() === now.getFullYear() ? short : date
  const shown = { short: day, clock }[time.dataset.local]?.format(at) ?? (isDate ? date.format(at) : past)
  time.replaceChildren(shown, said)
}
