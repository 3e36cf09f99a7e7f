// Adds comfort to the list of animals: ticks, a menu of categories, and fresh rows when its tab is shown again. Follows console.js.

const boxes = (name) => [...document.querySelectorAll(`[type="checkbox"][name="${name}"]`)]

/** Ticks all rows by a box of the page; such a box is ticked while all rows are. */
addEventListener('change', ({ target }) => {
  if (target.name === 'all') for (const box of boxes('pick')) box.checked = target.checked
  if (target.name !== 'all' && target.name !== 'pick') return
  const left = boxes('pick').filter(({ checked }) => !checked).length
  for (const box of boxes('all')) box.checked = left === 0
  const all = document.querySelector('[data-selected]')
  if (all) all.textContent = `${all.dataset.selected - left} selected`
})

/** On a phone the statuses are a line to scroll: shows the chosen one. */
const chosen = document.querySelector('#by-status [aria-current]')
if (chosen) chosen.closest('.toolbar').scrollLeft = chosen.getBoundingClientRect().left - innerWidth / 2

/** Resolves with a page of the console; with nothing if it did not come, or the session has ended. */
async function pageAt(address) {
  const response = await fetch(address).catch(() => undefined)
  const text = response?.ok && !response.redirected && (await response.text().catch(() => ''))
  return text ? new DOMParser().parseFromString(text, 'text/html') : undefined
}

/** Opens the page of categories as a menu: a link by it opens the list of one, a button gives one to the animals that are ticked. */
addEventListener('click', (event) => {
  const opener = event.target.closest?.('[data-choose], [data-select]')
  if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  void ('select' in opener.dataset ? selectAll : openChooser)(opener)
})

/** Selects all of the list, with its rows as they are then. */
async function selectAll({ href }) {
  const page = await pageAt(href)
  if (!page) return location.assign(href)
  for (const part of ['.animals', '#many']) document.querySelector(part).replaceWith(page.querySelector(part))
  showLocalTimes(document.querySelector('.animals'))
  document.querySelector('#many a').focus()
}

async function openChooser(opener) {
  const choose = document.querySelector('a[data-choose]')
  const page = await pageAt(choose.href)
  if (!page && opener === choose) location.assign(choose.href)
  if (!page || document.querySelector('dialog')) return
  const make = (name, values) => Object.assign(document.createElement(name), values)
  const dialog = make('dialog', { className: 'panel sheet', ariaLabel: 'Choose a category' })
  const input = make('input', {
    type: 'search',
    placeholder: 'Category',
    ariaLabel: 'Find a category',
    autofocus: true,
  })
  const links = [...page.querySelectorAll('.choices a')]
  dialog.append(input, page.querySelector('.choices'), page.querySelector('.choices + p'))
  const found = () => links.filter((link) => !link.parentElement.hidden)
  const plain = (text) => ` ${text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase().trim()}`
  input.addEventListener('input', () => {
    for (const link of links)
      link.parentElement.hidden = !plain(link.textContent).includes(plain(input.value).trimEnd())
  })
  dialog.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const isPressed = event.key === 'Enter' && event.target === input
    if (step || isPressed) event.preventDefault()
    if (isPressed) found().at(0)?.click()
    if (step) (found()[found().indexOf(document.activeElement) + step] ?? input).focus()
  })
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close()
    const link = event.target.closest('.choices a')
    if (!link || opener === choose) return
    event.preventDefault()
    dialog.close()
    const number = new URL(link.href).searchParams.get('category')
    opener.form.append(make('input', { type: 'hidden', name: 'categoryId', value: number }))
    opener.form.requestSubmit()
  })
  dialog.addEventListener('close', () => dialog.remove())
  // Animals are always of a category.
  if (opener !== choose) links.shift().parentElement.remove()
  document.querySelector('main').append(dialog)
  dialog.showModal()
}

/** Reads the list again when its tab is shown again, unless something is ticked or open, or a step is taken. */
document.addEventListener('visibilitychange', () => void refresh())
addEventListener('pageshow', ({ persisted }) => void (persisted && refresh()))

async function refresh() {
  const isBusy = () =>
    document.hidden || document.querySelector('.page input:checked, [data-sent], details[open], dialog')
  if (isBusy()) return
  const page = await pageAt(document.querySelector('.animals')?.dataset.listed ?? location.href)
  if (!page || isBusy()) return
  const [old, fresh] = [document, page].map((each) => each.querySelector('.animals tbody'))
  if (!old !== !fresh) return location.reload()
  const focused = old?.contains(document.activeElement) && document.activeElement
  for (const place of ['.animals tbody', '.animals .range', '#by-status', '.paging'])
    document.querySelector(place)?.replaceWith(page.querySelector(place) ?? '')
  if (fresh) showLocalTimes(fresh)
  const same = focused && (focused.id ? `#${focused.id}` : `tbody a[href="${focused.getAttribute('href')}"]`)
  if (same) document.querySelector(same)?.focus({ preventScroll: true })
}
