language-name = English
digit-separator = ,
description = A short-link service: short links, QR codes and statistics.
skip = Skip to the content
navigation = Pages of this service
colours-dark = Dark
colours-light = Light
colours-system = System colours
nav-create = Create
nav-links = Links
nav-statistics = Statistics
nav-tags = Tags
nav-domains = Domains
nav-bulk = Bulk create
nav-audit = Audit log
nav-admin = Admin
sign-in = Sign in
sign-out = Sign out
to-home = To the home page

# Home
home-title = Make a short link
home-create = Shorten
home-options = Options
home-campaign = Campaign (added to the long URL)
new-made = Your short link:
new-all-fields = All fields
new-many = Many links at once
home-sign-in = Sign in with an API key to create links here.
tags-example = news, autumn
created-title = Your short link
created-ends = It ends on { $value }.
created-another = Shorten another
created-manage = Edit this link
copy = Copy
copied = Copied
qr-code = QR code
qr-code-of = QR code of { $value }
qr-code-download = QR code as a file
qr-code-format = Format
qr-code-size = Size in pixels
qr-code-margin = Margin
qr-code-margin-quiet = Four modules, which readers need on dark pages
qr-code-margin-none = None
qr-code-colour = Colour
qr-code-background = Background
qr-code-low-contrast = The two colours are too much alike: many readers will not see the code.
qr-code-inverted = Some readers expect a colour that is darker than the background.
qr-code-logo = With the logo
qr-code-logo-svg = SVG only
qr-code-save = Download

# Fields
field-longUrl = Long URL
field-customSlug = Custom ending
field-domain = Domain
field-shortCodeLength = Length of the code
field-validSince = From
field-validUntil = Until
field-maxVisits = Number of visits
field-password = Password
field-new-password = New password
field-title = Title
field-description = Description
field-tags = Tags
field-tag = Tag
field-enabled = The link is active
field-forwardQuery = Pass the visitor's query on
field-crawlable = Crawlers may follow the link
field-extraPath = A path behind the name
field-expiredUrl = Once expired or used up, lead to
field-preview = Social preview
field-fetchTitle = If the title is empty, use the title of the page
extra-path-of-domain = As the domain says
extra-path-refuse = Is not for the link
extra-path-ignore = Is ignored
extra-path-append = Is appended to the long URL
extra-path-fill = Fills the placeholders of the long URL
field-api-key = API key
expected-longUrl = The long URL has to be a complete address of another site, such as https://example.com/page.
expected-customSlug = The ending may have letters, digits and the signs - _ . ~ /, and must not be a page of this service.
expected-domain = The domain has to be a host name, such as go.example.com.
expected-name = The domain has to be a host name, such as go.example.com.
expected-shortCodeLength = There are no codes of this length.
expected-validSince = The start has to be a date and a time, such as 2026-11-30 14:05, before the end if there is one.
expected-validUntil = The end has to be a date and a time, such as 2026-11-30 14:05, after the start if there is one.
expected-maxVisits = The number of visits has to be 1 or more.
expected-password = The password may have at most 256 bytes, and no control characters.
expected-tags = There may be at most 100 tags of 255 bytes.
expected-title = The title must not contain unusual control characters.
expected-description = The description is too long.
expected-extraPath = To be filled, the long URL and those of the rules need placeholders, {"{1}"} to {"{9}"} or {"{rest}"}, behind the host of an http or https address.
expected-expiredUrl = The address for expired links has to be a complete one whose host is allowed, and no short link of this domain.
expected-preview = The texts of the social preview are too long, or its picture is no complete web address whose host is allowed.
expected-orderBy = These are more than 10,000 links, too many for this order. Choose another order or a shorter period, or filter the list.
expected-page = There is no such page of the list.

# Signing in
sign-in-text = Your API key opens these pages for twelve hours, or until you sign out.
sign-in-wrong = This key does not exist, was revoked or has expired.

# Management
search = Search
all = All
order = Order
order-newest = Newest first
order-oldest = Oldest first
order-visits = Most visited
order-last-visit = Visited last
order-fewest-visits = Least visited
order-long-url-back = Long URL, from Z to A
count-links = { $count ->
    [one] { $shown } link
   *[other] { $shown } links
  }
count-visits = { $count ->
    [one] { $shown } visit
   *[other] { $shown } visits
  }
column-link = Short link
column-target = Leads to
column-created = Created
column-visits = Visits
column-state = State
column-share = Share
state-live = Live
state-not-yet = Not started
state-expired = Expired
state-disabled = Disabled
state-blocked = Taken down
state-denied = Denied by a target rule
state-deleted = Deleted
list-empty = There are no links yet.
list-empty-text = Make the first one above, or many from a table. The command “resolver import” brings those of another service with their codes.
list-no-match = No link matches.
clear-filters = Clear filters
list-explain = See what a visitor of { $value } gets, and why
tour-title = First steps
tour-done = Done:
tour-create = Make your first short link with the form above.
tour-share = Share it: copy the short link, or print its QR code.
tour-visits = See where its visitors come from, and which devices they use.
trash-title = Trash
trash-empty = The trash is empty.
trash-empty-text = A link that you delete, on its page or with others in the list, stands here and can be restored with its code and its visits.
restore = Restore
undo = Undo
list-visits-in = Visits during
list-filters = Search and filters
list-filters-on = Search and filters (in use)
list-download-first = Download the first { $value } as CSV
list-count = Links per page
list-hide-ended = Hide ended links
list-deleted = Deleted { $value }.
list-visits-of = Statistics of { $value }
choose = Select
choose-all = Select all links on this page
choose-link = Select { $value }
chosen-title = Selected links
chosen-add-tag = Add tag
chosen-remove-tag = Remove tag
chosen-move = Move to domain
chosen-move-text = A link that moves keeps its code or slug. Its old address stops working, unless the new domain is the default one.
chosen-delete = Delete the selected links
chosen-delete-text = The links stop redirecting. They can be restored from the trash.
chosen-enable = Enable
chosen-disable = Disable
chosen-done = { $count ->
    [one] Changed { $shown } link.
   *[other] Changed { $shown } links.
  }
chosen-unchanged = { $count ->
    [one] { $shown } link needed no change.
   *[other] { $shown } links needed no change.
  }
chosen-undone = { $count ->
    [one] Undid the change of { $shown } link.
   *[other] Undid the change of { $shown } links.
  }
chosen-failed = These links were not changed and are still selected:
chosen-not-undone = The change of these links was not undone:
chosen-expected-links = Select links in the list first.
chosen-expected-domain = Choose the domain that the links move to.
chosen-expected-tag = Enter a tag.
chosen-expected-action = Choose an action.
every-choose = All links of this list, on every page. You will see how many there are before anything is changed.
every-title = Change all links of the list
every-would-add-tag = { $count ->
    [one] { $shown } link would get the tag “{ $value }”.
   *[other] { $shown } links would get the tag “{ $value }”.
  }
every-would-remove-tag = { $count ->
    [one] { $shown } link would lose the tag “{ $value }”.
   *[other] { $shown } links would lose the tag “{ $value }”.
  }
every-would-enable = { $count ->
    [one] { $shown } link would be enabled.
   *[other] { $shown } links would be enabled.
  }
every-would-disable = { $count ->
    [one] { $shown } link would be disabled.
   *[other] { $shown } links would be disabled.
  }
every-would-delete = { $count ->
    [one] { $shown } link would be deleted.
   *[other] { $shown } links would be deleted.
  }
every-unchanged = { $count ->
    [one] { $shown } link needs no change.
   *[other] { $shown } links need no change.
  }
every-more = There are more links.
every-do-add-tag = { $count ->
    [one] Add the tag to { $shown } link
   *[other] Add the tag to { $shown } links
  }
every-do-remove-tag = { $count ->
    [one] Remove the tag from { $shown } link
   *[other] Remove the tag from { $shown } links
  }
every-do-enable = { $count ->
    [one] Enable { $shown } link
   *[other] Enable { $shown } links
  }
every-do-disable = { $count ->
    [one] Disable { $shown } link
   *[other] Disable { $shown } links
  }
every-do-delete = { $count ->
    [one] Delete { $shown } link
   *[other] Delete { $shown } links
  }
every-go-on = Continue
every-failed = These links cannot be changed:
every-expected-action = For all links of a list, you can add or remove a tag, enable, disable or delete.
pages = Pages of the list
page-before = Previous
page-after = Next
page-of = Page { $first } of { $second }
page-number = Page { $value }
links-at-least = At least { $value } links
link-created = Created on { $value }
edit-title = Edit
save = Save
show = Show
download-csv = Download as CSV
remove = Remove
keyspace = Keyspace
reservation = Reservation
column-value = Value
stored = The changes are stored.
remove-password = Remove the password
delete = Delete
delete-text = The link stops leading on. It can be restored from the trash.
delete-link = Delete { $value }
field-scheduledFor = Change it at a later time
expected-scheduledFor = The time of the changes has to be in the future.
expected-any-field = Nothing in the form is changed.
schedule-title = Scheduled changes
schedule-stored = Scheduled for { $value }.
schedule-no-ending = The ending cannot be changed at a later time, only now.
schedule-failed = Not made
schedule-cancel = Cancel
schedule-cancel-at = Cancel the change of { $value }
history-title = History
history-operator = Operator
history-undo = Undo the change of { $value }
conflict-caption = Fields that have changed meanwhile. Nothing is stored yet: check the form and save again.
conflict-field = Field
conflict-yours = Yours
conflict-theirs = Stored meanwhile

# Errors
error-title = That did not work
error-other-origin = The form is out of date or comes from another site. Open the page again and send it once more.
error-form = The form could not be read, or is too long.
error-forbidden = Your API key lacks the scope “{ $value }”.
error-limited-key = Your API key sees a part of the links only, and this needs one that sees all.
error-no-link = There is no link { $value }, or your API key does not see it.
error-slug-taken = The ending { $value } is taken already.
error-form-reused = This form has already created another link. Open the page again before you change it.
error-superseded = This was changed meanwhile.
error-blocked = The link was taken down by an operator.
error-no-scheduled-edit = This change is no longer scheduled.
error-too-many-scheduled = There are { $value } scheduled changes already. Cancel one first.
error-undo-no-entry = The log does not have this change any more.
error-undo-no-edit = Only edits can be undone. A deleted link is restored from the trash, and only an operator lifts a takedown.
error-undo-changed-again = Nothing was undone, because these fields were changed again since: { $value }. Undo the later change first, or edit them.
error-undo-irrevocable = Nothing was undone, because the former value of these fields does not come back: { $value }. Move or rename the link, or set the password again.
error-exhausted = There are not enough codes of this length left.
error-slow-list = Too many links have to be read for this list. Choose dates, a tag or a longer text, or try again in a moment.
error-unavailable = The service cannot do this right now. Try again in a moment.
error-internal = An error occurred.
no-page-title = No such page
no-page-text = This address has no page. Was it copied whole?

# Visitors
visitor-home-title = A short-link service
visitor-home-text = Short links of this host lead to other sites.
not-found-title = No such link
not-found-text = This short link does not exist. Was it copied whole, and nothing added?
expired-title = This link has expired
expired-text = This short link led somewhere for a limited time, which is over.
spent-title = This link is used up
spent-text = This short link led on a limited number of times.
gone-title = This link has ended
gone-text = This short link does not lead anywhere any more.
taken-down-title = This link was taken down
taken-down-text = The operator of this service has disabled this short link or the page that it leads to.
password-title = This link has a password
password-text = Enter it to go on.
password-wrong = That was not the password.
password-go-on = Go on
slow-down-title = Slow down
too-many-tries-text = Too many passwords were tried for this link. Try again later.
limited-title = Short link
limited-text = This link leads on only a limited number of times. Open it in a browser to follow it.
confirm-title = This link leads on a limited number of times
confirm-text = Going on uses up one of them.
unavailable-title = One moment
unavailable-text = This link cannot be looked up right now. Try again in a second.
too-much-title = Slow down
too-much-text = There were too many requests from here in a short time. Try again later.
slow-down-text = Too many short links that do not exist were asked for from here. Try again later.
preview-title = Where this link leads
preview-leads-to = It leads to:
preview-password = A password is needed to see where it leads.
preview-depends = Where it leads depends on who follows it, or how often it was followed.
preview-follow = Follow the link
social-preview-text = What chats and social networks show for the link. If all fields are empty, they show the preview of the target page.
social-preview-image = Picture address

# Cluster
nav-cluster = Cluster
cluster-leader = Leading issuer
cluster-no-leader = No issuer answers
cluster-epoch = Epoch
cluster-database = Database
cluster-visits = Visit store
cluster-spool = Unstored visit blocks
cluster-kilobytes = { $value } kB spooled
cluster-answers = Reachable
cluster-silent = Not reachable
cluster-supply = Numbers available to this process
cluster-in-hand = In hand
cluster-lasts = Time left
cluster-unused = Not used at present
cluster-minutes = { $count ->
    [one] { $shown } minute
   *[other] { $shown } minutes
  }
cluster-hours = { $count ->
    [one] { $shown } hour
   *[other] { $shown } hours
  }
cluster-days = { $count ->
    [one] { $shown } day
   *[other] { $shown } days
  }
cluster-space = Numbers of each keyspace
cluster-left = Left
cluster-allocated = Allocated
cluster-used = Used
cluster-open = Open
cluster-free = Free
cluster-leaked = Leaked
cluster-reclaimed = Reclaimed
cluster-exhausted = Time left
cluster-burned = Burned
cluster-account = Account
cluster-balances = Balances
cluster-unbalanced = Does not balance
cluster-holders = Holders of blocks
cluster-holder = Holder
cluster-incarnation = Incarnation
cluster-blocks = Open blocks
cluster-alive = Alive
cluster-gone = Gone

# Tags, domains, many links, log
tags-caption = Tags of all links that your API key sees
tags-count = { $count ->
    [one] { $shown } tag
   *[other] { $shown } tags
  }
tags-order-name = Name
tags-order-links = Most links
tags-empty = No link has a tag yet.
tags-empty-text = Tags group links, such as those of a campaign, and have statistics of their own. A link gets them when it is made, or many at once in the list.
tags-no-match = No tag matches.
tags-rename = Rename
tags-rename-one = Rename { $value }
tags-new-name = New name of { $value }
tags-statistics = { $first }: statistics of { $second }
tags-delete-text = { $count ->
    [one] The tag is removed from { $shown } link, which stays. This cannot be undone: nothing records which link had it.
   *[other] The tag is removed from { $shown } links, which stay. This cannot be undone: nothing records which links had it.
  }
expected-newName = A tag has 1 to 255 bytes and no control characters.
error-no-tag = There is no tag { $value } any more.
error-tag-taken = There is a tag { $value } already.
domains-caption = Domains and what they do with visitors without a link
domains-count = { $count ->
    [one] { $shown } domain
   *[other] { $shown } domains
  }
domains-empty = Your API key sees no domain.
domains-default = default
domains-untracked = Visitors are only counted
domains-protocol = Scheme
domains-protocol-default = As the default domain
domains-built-in = Page of this service
domains-baseUrlRedirect = Home page leads to
domains-regular404Redirect = Other paths lead to
domains-invalidShortUrlRedirect = Unknown links lead to
domains-edit-one = Edit { $value }
domains-name = Name
domains-enabled = The links of this domain lead on
domains-trackVisitors = Keep data about visitors
domains-ignoreCase = Capitals find links in small letters, and new endings are kept in small letters
domains-ignoreTrailing = A slash or a punctuation mark behind the name is ignored
domains-catchAll = The link named * answers every path that no other link has
domains-crossOrigin = Scripts of other sites may follow links
domains-crawlable = Crawlers may follow all links
domains-confirmLimited = Visitors of links with a limit of visits confirm that they want to go on
domains-queryTemplate = Parameters that redirects add, unless the target has them
expected-queryTemplate = The parameters have to be like utm_source={"{domain}"}&utm_campaign={"{code}"}, at most 512 bytes long, without an address in front, # or spaces. The placeholders are {"{code}"} and {"{domain}"}, in values only.
domains-appleAppSiteAssociation = Apple apps that open links (apple-app-site-association, JSON)
domains-assetLinks = Android apps that open links (assetlinks.json)
expected-appleAppSiteAssociation = The Apple apps have to be JSON of at most 128 KiB: an object whose applinks.details list apps, each with appIDs or appID, and with components or paths.
expected-assetLinks = The Android apps have to be JSON of at most 128 KiB: a list of statements, each with relation and target, or with include.
domains-remove-one = Remove { $value }
domains-remove-text = A domain can be removed once it has no links and no API key is limited to it. This cannot be undone: its settings are lost, and its deleted links can no longer be restored.
domains-add = Add a domain
domains-add-text = Its DNS records have to lead to this service.
expected-redirect = { $value }: expected an http or https address whose host is allowed, with placeholders behind the host only, or a path of this domain without a backslash.
error-no-domain = There is no domain { $value }.
error-domain-taken = There is a domain { $value } already.
bulk-rows = Rows
bulk-text = One long URL on each line, or a table (CSV) whose first line names its columns. At most { $value } rows.
bulk-columns = Columns: { $value }. Cells are separated by commas, semicolons or tabs; several tags by | or by commas in quotation marks.
bulk-template = Download a table to fill in (CSV)
bulk-file = CSV file, which can also be dropped on the rows
bulk-file-wrong = The file is too long: expected at most 2 MiB.
bulk-file-foreign = The text of the file is not in UTF-8. Save the table as “CSV UTF-8”.
bulk-working = Processing rows …
bulk-preview = Preview
bulk-create = { $count ->
    [one] Create { $shown } link
   *[other] Create { $shown } links
  }
bulk-count = { $count ->
    [one] { $shown } row was read.
   *[other] { $shown } rows were read.
  }
bulk-all-right = Nothing is stored yet.
bulk-some-wrong = Nothing is stored yet. Wrong rows are left out unless you correct them.
bulk-wrong-rows = Wrong rows
bulk-first-rows = First rows
bulk-line = Line
bulk-reason = Reason
bulk-empty = There are no rows.
bulk-unknown-column = There is no column “{ $first }”, but only { $second }.
bulk-repeated-column = The first line names the column “{ $value }” twice.
bulk-no-long-url = The first line names no column “longUrl”.
bulk-too-many = There are more than { $value } rows. Nothing is stored: send them in parts.
bulk-wrong-cells = The row has more cells than columns. Is a comma not in quotation marks?
bulk-wrong-break = A cell has a line break. Is a quotation mark missing?
bulk-wrong-quote = The quotation mark that ends a cell of this row is missing, so the rows from here on cannot be read.
bulk-wrong-rounded = A spreadsheet has made a number of the ending. Write it again, in a column of texts.
bulk-wrong-day = The day and the month of the end cannot be told apart. Write it like 2026-11-30 14:05.
bulk-wrong-time = The end cannot be read as a date. Write it like 2026-11-30 14:05.
bulk-slug-twice = The ending { $value } is in this table twice.
bulk-result = Created links
bulk-result-caption = The short link of each row, or why it has none
bulk-created = { $count ->
    [one] { $shown } link was created.
   *[other] { $shown } links were created.
  }
bulk-refused = { $count ->
    [one] { $shown } row did not become a link.
   *[other] { $shown } rows did not become links.
  }
bulk-download = Download the result as CSV
bulk-copy = Result to copy
bulk-csv = Result as CSV
bulk-again = More links
audit-caption = Changes, the latest first
audit-time = Time
audit-action = Action
audit-object = Object
audit-object-hint = A code or slug, domain/slug, a tag, a domain, or the name of a key
audit-changes = Before → after
audit-latest = Latest entries
audit-older = Older
audit-empty = There are no entries.
audit-empty-text = Edits and deletions of links, and changes of tags, domains, target rules, keys and webhooks, stand here with the API key that made them. Edit a link to see one.
audit-no-match = No entry matches.
audit-operator = Operator's command line
audit-orphans = Visits without a link
audit-none = none
audit-yes = yes
audit-no = no
audit-field-enabled = Enabled
audit-field-allowed = Allowed
audit-field-blocked = Reason of the takedown
audit-field-redirectStatus = Status of redirects
audit-field-redirectRules = Redirect rules
audit-field-hasPassword = Has a password
audit-field-deletedAt = Deleted at
audit-field-deletedVisits = Deleted visits
audit-field-isComplete = Complete
audit-field-shortCode = Name
audit-field-host = Host
audit-field-events = Events
audit-edit-link = Link edited
audit-delete-link = Link deleted
audit-restore-link = Link restored
audit-block-link = Link taken down
audit-unblock-link = Takedown lifted
audit-rename-tag = Tag renamed
audit-delete-tag = Tag deleted
audit-add-domain = Domain added
audit-edit-domain = Domain edited
audit-remove-domain = Domain removed
audit-set-target = Target rule set
audit-remove-target = Target rule removed
audit-create-key = API key created
audit-revoke-key = API key revoked
audit-rotate-key = API key renewed
audit-create-webhook = Webhook created
audit-edit-webhook = Webhook edited
audit-rotate-webhook = Secret of a webhook renewed
audit-remove-webhook = Webhook removed
audit-disable-webhook = Webhook disabled
audit-delete-link-visits = Visits of a link deleted
audit-delete-orphan-visits = Visits without a link deleted
audit-erase-visits = Visits of an address erased

# Statistics
stats-of-link = Statistics of { $value }
stats-of-tag = Statistics of the tag { $value }
stats-of-domain = Statistics of the domain { $value }
stats-of-all = Statistics of all links
stats-of-orphans = Visits without a link
stats-to-link = To the link
stats-others = Other statistics
stats-period = Period
period-today = Today
period-7d = 7 days
period-30d = 30 days
period-90d = 90 days
stats-subject = Subject of the statistics
stats-every-kind = All kinds
stats-kind = Kind of visit
stats-invalid-link = Unknown or ended link
stats-no-page = Invalid address
stats-map = Visits by country
stats-more = More countries
period-month = This month
period-last-month = Last month
period-year = This year
period-all = All
period-dates = These dates
stats-from = First day
stats-until = Last day
stats-without-bots = Without bots
stats-wrong-dates = Both days have to be dates, the first one not after the last, and not in the future.
stats-wrong-subject = Enter the short link, the tag or the domain whose visits you want to see.
stats-change = Change
stats-change-none = As many visits as in the period before
stats-change-new = There were no visits in the period before
stats-change-more = { $value } % more visits than in the period before
stats-change-less = { $value } % fewer visits than in the period before
stats-visits-before = { $count ->
    [one] { $shown } visit in the period before
   *[other] { $shown } visits in the period before
  }
stats-visitors = Unique visitors
stats-addresses = Distinct addresses
stats-bots = Bots
stats-exact = Counted exactly
stats-error = ± { $value } %
stats-over-time = Visits over time
stats-chart-text = A bar for the visits of each interval from { $first } to { $second }. The table below the chart has the same numbers.
stats-legend = The dashed line is the period before, which is of the same length.
stats-zone = Times are those of { $value }.
stats-table = Show as table
stats-time = From
stats-before = Period before
stats-empty = There were no visits in this period.
stats-empty-text = Visits are counted within seconds. Open a short link to see one, or choose a longer period.
stats-rankings = Where visits came from
stats-share = Share
stats-by-country = Countries
stats-by-city = Cities
stats-by-referrer = Referrers
stats-by-browser = Browsers
stats-by-os = Operating systems
stats-by-device = Devices
stats-by-language = Languages
stats-map-empty = There is no map, because no visit has a known country. An operator names a GeoIP database with --places, or a proxy’s header with --proxy-headers country=NAME. Earlier visits stay without a country.
stats-map-legend = The stronger the colour, the more visits.
stats-by-rule = Redirect rules
stats-by-outcome = Outcomes of all requests
stats-other = Others
stats-unknown = Unknown
stats-no-referrer = Without a referrer
stats-no-rule = No rule: the long URL of the link
stats-device-desktop = Desktop
stats-device-mobile = Phone
stats-device-tablet = Tablet
stats-device-tv = Television
stats-device-console = Game console
stats-device-wearable = Wearable
stats-device-bot = Bot
stats-device-other = Another kind
stats-device-unknown = Not stated
stats-outcome-redirected = Redirected
stats-outcome-disabled = Link disabled
stats-outcome-expired = Link expired
stats-outcome-not-yet-valid = Link not yet valid
stats-outcome-limit-reached = Number of visits used up
stats-outcome-wrong-password = Wrong password
stats-outcome-unknown-code = No such link
stats-outcome-invalid-path = No possible link
stats-outcome-base-url = Home page
stats-outcome-taken-down = Link taken down
stats-outcome-tracked = Tracking pixel
stats-days = Visitors, addresses and rankings count whole days of UTC, from { $first } to { $second }. A visitor who comes back on another day counts again.

# Target rules, reservations, sheets of QR codes
targets-title = Target rules
targets-count = { $count ->
    [one] { $shown } rule
   *[other] { $shown } rules
  }
targets-caption = Hosts that links may or must not lead to
targets-text = The longest pattern that matches a host decides. A host without a matching pattern is allowed, so only a rule that denies * turns the others into an allow-list. Links to a denied host stop redirecting within a second, until the rule is removed; unless this service applies rules to new links only.
targets-empty = There are no rules: links may lead to every host.
targets-empty-text = Set a rule below, such as one that denies a host of phishing. It then stands here, and can be removed.
targets-pattern = Hosts
targets-verdict = Links to them
targets-allowed = Allowed
targets-denied = Denied
targets-remove-one = Remove the rule for { $value }
targets-add = Set a rule
targets-add-text = example.com is that host alone, *.example.com is every host below it, and * is every host. A pattern that has a rule already gets the new one.
expected-pattern = The hosts have to be one such as example.com, *.example.com for all below it, or * for every host.
error-no-target = There is no rule for { $value }.
reservations-title = Reservations
reservations-count = { $count ->
    [one] { $shown } open reservation
   *[other] { $shown } open reservations
  }
reservations-open = Open reservations
reservations-caption = Open reservations, the latest first
reservations-text = Reserved codes can be printed before their links exist. No other link gets one of them until the reservation is given up. Store its link by creating one with the code as its name, or many with the API.
reservations-empty = There are no open reservations.
reservations-empty-text = Reserve codes below. They then stand here, to copy and to print, until you give them up.
reservations-codes = Codes
reservations-own-key = This one
reservations-other-key = Another one
reservations-elsewhere = Only used by other processes
reservations-give-up = Give up
reservations-give-up-one = Give up { $value }
reservations-give-up-text = Links that were stored under its codes stay. This cannot be undone: codes without a link may then be given to other links.
reservations-add = Reserve codes
reservations-add-text = From 1 to { $value } codes, which belong to the default domain.
reservations-number = Number of codes
reservations-one-domain = Reserved codes belong to the default domain, and your API key is limited to another one.
reservations-made = The codes are reserved.
reservations-codes-of = Codes of { $value }
reservations-code-count = { $count ->
    [one] { $shown } code
   *[other] { $shown } codes
  }
reservations-filled = { $count ->
    [one] { $shown } of them has a link
   *[other] { $shown } of them have a link
  }
reservations-given-up = Given up on { $value }.
reservations-copy = Codes to copy, one on each line
expected-count = The number of codes has to be between 1 and { $value }.
expected-keyspace = There is no such keyspace on this server.
error-no-reservation = There is no reservation { $value }, or your API key does not see it.
error-too-many-reservations = Give up a reservation first: { $first } of { $second } reservations of your API key are open.
error-too-many-codes = Reserve fewer codes, or give up a reservation first: { $first } of { $second } codes of your API key are reserved.
sheet-link = Print QR codes
sheet-title = QR codes
sheet-text = Print this page: three codes stand side by side on paper.
sheet-to-list = To the list
sheet-pdf = Download labels as PDF
sheet-zip = Download images as ZIP
sheet-first = Downloads have the first { $value } links.
sheet-empty = There are no links to print.
sheet-empty-text = The QR code of each link of the list stands here. Make a link, or clear the filters of the list.

# Redirect rules
rules-title = Redirect rules
rules-of-link = Redirect rules of { $value }
rules-list = Rules in the order in which they are tried
rules-text = The first rule whose conditions all hold decides where a visitor is led. If there is none, it is the long URL of the link:
rules-empty = There are no rules: every visitor is led to the long URL.
rules-rule = Rule { $value }
rules-every-visitor = Every visitor
rules-denied = The target rules of this service deny this address. Visitors who match are told that the link was taken down. Change or delete the rule before you change others.
rules-up = Up
rules-up-one = Move rule { $value } up
rules-down = Down
rules-down-one = Move rule { $value } down
rules-win = Make it the winner
rules-win-one = Make it the winner: rule { $value } leads the visitors of the other shares too
rules-delete-one = Delete rule { $value }
rules-delete-all = Delete all rules
rules-delete-all-text = Every visitor is then led to the long URL of the link.
rules-conditions-of = Conditions of rule { $value }
rules-delete-condition = Delete condition { $first } of rule { $second }
rules-lead = Change long URL
rules-lead-one = Change the long URL of rule { $value }
rules-add-condition = Add a condition
rules-add-condition-to = Add a condition to rule { $value }
rules-add = Add a rule
rules-add-text = The rule is tried after the others.
rules-full = A link may have at most { $value } rules.
rules-conditions-full = A rule may have at most { $value } conditions.
rules-type = Condition
rules-choose = Choose a condition
rules-key = Name of the query parameter
rules-what = What to write as a value
rules-values = Devices: { $first }. Browsers: { $second }, of which in-app is the browser within an app such as Instagram. A language is written as en or en-US, a country as DE. An IP address may also be a network such as 192.0.2.0/24, or a pattern such as 192.0.*.7. A share is a percentage such as 50: a visitor stays in the same one, and those of all rules are 100 at most. A path begins with a slash, as in /v#/**: # stands for digits, * for a part between slashes, ** for anything, and what they match replaces {"{1}"}, {"{2}"}, … in the address.
rules-limits = A time is written as 2030-12-31 18:00 and is in the zone { $first }; a date alone begins at midnight there. A rule may have { $second } conditions, which all have to hold.
rules-type-device = Device
rules-type-browser = Browser
rules-type-language = Language
rules-type-query-param = Query parameter with a value
rules-type-any-value-query-param = Query parameter with any value
rules-type-valueless-query-param = Query parameter without a value
rules-type-ip-address = IP address
rules-type-geolocation-country-code = Country
rules-type-geolocation-city-name = City
rules-type-before-date = Before a time
rules-type-after-date = After a time
rules-type-share = Share of visitors, in percent
rules-type-path = Path behind the link
rules-type-scheme = http or https
rules-condition-device = Device: { $second }
rules-condition-browser = Browser: { $second }
rules-condition-language = Language: { $second }
rules-condition-query-param = Query parameter: { $first } = { $second }
rules-condition-any-value-query-param = Query parameter with any value: { $first }
rules-condition-valueless-query-param = Query parameter without a value: { $first }
rules-condition-ip-address = IP address: { $second }
rules-condition-geolocation-country-code = Country: { $second }
rules-condition-geolocation-city-name = City: { $second }
rules-condition-before-date = Before { $second }
rules-condition-after-date = After { $second }
rules-condition-share = { $second } % of visitors
rules-condition-path = Path behind the link: { $second }
rules-condition-scheme = The visitor uses { $second }
rules-wrong = { $first }: { $second }
rules-superseded = The link was changed meanwhile, so nothing is stored. These are its present rules.
rules-others = More fields are wrong.
rules-expected-allowed = The target rules of this service deny this address.
rules-expected-other = A rule must not lead to the short link itself.
rules-expected-type = Choose a condition.
rules-expected-path = A path begins with a slash and has at most nine of #, * and **. A rule has one at most.
rules-expected-scheme = The value is http or https.
rules-expected-key = The name of a query parameter has 1 to 255 bytes.
rules-expected-value = A value has 1 to 255 bytes.
rules-expected-device = The device has to be one of { $value }.
rules-expected-browser = The browser has to be one of { $value }.
rules-expected-address = The value has to be an IP address, a network such as 192.0.2.0/24, or a pattern such as 192.0.*.7.
rules-expected-country = The country has to be two capital letters of ISO 3166-1, such as DE.
rules-expected-date = The time has to be written as 2030-12-31 or 2030-12-31 18:00.
rules-expected-share = A share has to be a whole percentage from 1 to 99, and those of all rules may be 100 together.
rules-example = What would happen
rules-example-text = Describe a visit; the form begins with your own, now. Country and city are not looked up from the IP address. The link's password and number of visits are left out.
rules-browser-own = This browser
rules-browser-none = No user agent
rules-user-agent = Or this user agent
rules-language = Languages (Accept-Language)
rules-query = Query of the short URL
rules-time = Time, if not now
rules-try = Try
rules-match = Rule { $value } matches and leads to
rules-no-match = No rule matches. The link leads to
rules-match-denied = The target rules of this service deny this address: the visitor is told that the link was taken down.
rules-match-not-live = The link does not redirect at this time, whatever its rules are.
rules-wrong-ip = The IP address has to be written as 192.0.2.7 or 2001:db8::7.
rules-wrong-time = The time has to be a date and a time.
explain-title = Explain a link
explain-text = Describe a visit, and see what the visitor gets and why. The short URL may have any query, path or marks behind it, and need not exist. The form begins with your own browser; without an address it is yours, and without a time it is now. Nothing is counted as a visit.
explain-url = Short URL, or its path
explain-do = Explain
explain-user-agent = User agent
explain-leads = Answer { $first }: redirect to { $second }
explain-page = Answer { $first }: page “{ $second }”
explain-domain-default = The host belongs to the default domain { $value }.
explain-domain-other = The host belongs to the domain { $value }.
explain-domain-unknown = No domain has this host, so the default domain answers: { $value }
explain-domain-disabled = The domain { $value } is disabled.
explain-name-root = The path is the root of the domain.
explain-name-impossible = No link can have the path { $value }.
explain-name-exact = A link has exactly the name { $value }.
explain-name-lower-case = A link has the name in small letters. Tried: { $value }
explain-name-trailing = A link has the name without the marks or the text behind it. Tried: { $value }
explain-name-prefix = A link has the beginning of the path as its name. Tried: { $value }
explain-name-catch-all = The link that catches all paths of the domain answers. Tried: { $value }
explain-name-refused = The link { $value } is there, but the path behind its name is not for it.
explain-name-unknown = No link has the name. Tried: { $value }
explain-name-unanswered = The database does not answer, so it is not known whether a link has the name { $value }.
explain-state-live = The link redirects at this time.
explain-state-deleted = The link was deleted: { $value }
explain-state-blocked = The link was taken down: { $value }
explain-state-disabled = The link is disabled.
explain-state-expired = The link has expired: { $value }
explain-state-not-yet-valid = The link is not valid before { $value }.
explain-state-unreadable = A later release has stored something of the link that this one cannot read.
explain-preview-shown = The plus asks for a preview of { $value }.
explain-preview-own = Crawlers of chats and social networks get the social preview of { $value }.
explain-password-asked = The link asks for its password. With it, the visitor is led on as follows.
explain-visits-left = The limit of { $value } visits is not used up.
explain-visits-spent = The limit of { $value } visits is used up.
explain-visits-crawler = A crawler uses up no visit of the limit, and does not learn the target.
explain-visits-confirm = The visitor has to confirm before a visit of the limit is used up.
explain-rule-matches = Rule { $value } matches.
explain-rule-differs = A condition does not hold: rule { $value }
explain-rule-unreadable = Only a later release can read rule { $value }, so it matches no visit.
explain-target-allowed = The target is { $value }.
explain-target-denied = The target rules deny { $value }.
explain-target-pattern = The rule for { $value } denies it.
explain-path-applied = The path behind the name is { $value }.
explain-query-forwarded = The query is passed on: { $value }
explain-query-dropped = The query is not passed on: { $value }
explain-query-added = The domain adds these parameters, unless the target has them: { $value }
explain-fallback-expired-link = The link's own address for after its end is used. { $value }
explain-fallback-expired-domain = The domain's address for expired links is used. { $value }
explain-fallback-keyspace = The fallback target of the keyspace is used. { $value }
explain-fallback-domain = The fallback target of the domain is used. { $value }
explain-fallback-operator = The fallback target of this service is used. { $value }
explain-fallback-unusable = A fallback target is too long with this path, or denied. { $value }
explain-fallback-none = There is no fallback target, so a page is shown.
expected-country = The country has to be two letters, such as DE.
expected-ip = The IP address has to be written as 192.0.2.7 or 2001:db8::7.
expected-shortUrl = Enter a short URL, or its path on the default domain. This service itself answers some paths, such as those of its pages: they belong to no link.
expected-at = The time has to be a date and a time.
restore-link = Restore { $value }
error-may-not-add-domain = There is no domain { $value }, and your API key may not add it.
error-domain-in-use = The domain { $value } has links or keys, and cannot be removed.
cluster-with-holders = With holders

# Webhooks
webhooks-title = Webhooks
webhooks-count = { $count ->
    [one] { $shown } webhook
   *[other] { $shown } webhooks
  }
webhooks-empty = There are no webhooks yet.
webhooks-empty-text = A webhook tells another service, such as a chat or a data warehouse, when links change or are visited. Add one with the address that the other service gives you.
webhooks-url = Address of the receiver
webhooks-event = Event
webhooks-events = Events
webhooks-only = Only for
webhooks-last = Last delivery
webhooks-no-delivery = None in the last week
webhooks-dropped = Dropped
webhooks-enabled = Enabled
webhooks-failing = Failing
webhooks-failing-since = Since { $value }
webhooks-add = Add a webhook
webhooks-add-text = Each event is a request with a signature. The secret that signs it is shown once. With a domain, a tag or a short link, only events about it are sent.
webhooks-secret = This secret signs the requests of the webhook. It will not be shown again.
webhooks-former = The former secret also signs until { $value }
webhooks-test = Send a test event
webhooks-sent = The event is queued. Reload the page to see how its delivery went.
webhooks-deliveries = Deliveries
webhooks-deliveries-empty = Nothing was sent in the last week. A test event shows whether the receiver can be reached.
webhooks-delivery-open = Waiting
webhooks-delivery-delivered = Delivered
webhooks-delivery-dead = Given up
webhooks-next = Next attempt: { $value }
webhooks-attempts = Attempts
webhooks-answer = Last answer
webhooks-redeliver = Send again
webhooks-redeliver-one = Send again: the event of { $value }
webhooks-rotate-text = The new secret is shown once. The former one also signs for 24 hours, so that the receiver can switch.
webhooks-changed = The webhook was changed meanwhile, so its secret was not replaced.
webhooks-delete-text = The receiver gets no more events, not even those already queued. This cannot be undone; a disabled webhook can be enabled again.
webhooks-event-visits-recorded = A link was visited
webhooks-event-orphan-visits-recorded = A visit found no link
webhooks-event-link-created = A link was created
webhooks-event-link-updated = A link was edited
webhooks-event-link-deleted = A link was deleted
webhooks-event-link-restored = A link was restored
webhooks-event-link-blocked = A link was taken down
webhooks-event-link-unblocked = A takedown was lifted
webhooks-event-ping = Test
expected-url = The address has to be a complete https address that this service may send events to.
expected-events = Choose at least one event.
expected-tag = A tag has 1 to 255 bytes and no control characters.
error-no-webhook = This webhook does not exist any more.
error-no-delivery = This delivery does not exist any more: they are kept for a week.
error-too-many-webhooks = There are { $value } webhooks already. Delete one first.
error-webhook-disabled = The webhook is disabled, so it gets no test event. Enable it first.

# API keys
keys-title = API keys
keys-count = { $count ->
    [one] { $shown } key
   *[other] { $shown } keys
  }
keys-name = Name
keys-scopes = Permissions
keys-limits = Limits
keys-last-used = Last used
keys-expires = Expires
keys-never = Never
keys-revoked = Revoked
keys-any-calls = any number of calls
keys-calls = { $value } calls per minute
keys-own-links = own links only
keys-no-orphans = no orphan visits
keys-change-one = Edit the key { $value }
keys-confirm = Your own API key
keys-confirm-text = Enter the key of this session again. The new secret is shown once.
keys-keep = The current secret stays valid for
keys-hours = { $count ->
    [0] no time
    [one] { $shown } hour
   *[other] { $shown } hours
  }
keys-rotate = Replace the secret
keys-revoke-one = Revoke { $value }
keys-add = Create key
keys-domain = Domain
keys-days = Lifetime in days (empty: unlimited)
keys-calls-field = Calls per minute (empty: default, 0: unlimited)
keys-own-links-field = Only its own links
keys-no-orphans-field = No visits that no link redirected
keys-secret = This is the secret of { $value }. It will not be shown again.
keys-not-confirmed = This is not the key of this session. Nothing was changed.
keys-expected-name = Use 1 to 64 letters, digits and the characters . _ and - for the name.
keys-expected-scopes = Choose what the key may do.
keys-expected-days = The number of days has to be from 1 to 36,500.
keys-expected-calls = The number of calls has to be 0 or more.
keys-expected-keep = Choose how long the current secret stays valid.
keys-taken = A key with this name exists. Choose another name.
keys-changed = The secret has been replaced in the meantime. Nothing was changed.
keys-absent = There is no such key, or it is revoked.
keys-beyond-own = That key lasts longer than yours, or may make more calls. Replace its secret with a key that has no such limit.
keys-last-operator = This is the last administrator's key without limits. Create another one before you revoke it.
scope-create = Create links
scope-read = Read links
scope-edit = Edit links and tags
scope-delete = Delete links and tags
scope-visits = Read visits
scope-reserve = Reserve codes
scope-domains = Add domains
scope-admin = Full access, including API keys

# Countries and territories, as the Unicode CLDR calls them. The others have the names of `geoip`.
country-AG = Antigua & Barbuda
country-BA = Bosnia & Herzegovina
country-BL = St. Barthélemy
country-CD = Congo - Kinshasa
country-CG = Congo - Brazzaville
country-CI = Côte d’Ivoire
country-CV = Cape Verde
country-GS = South Georgia & South Sandwich Islands
country-HK = Hong Kong SAR China
country-HM = Heard & McDonald Islands
country-KN = St. Kitts & Nevis
country-LC = St. Lucia
country-MF = St. Martin
country-MM = Myanmar (Burma)
country-MO = Macao SAR China
country-PM = St. Pierre & Miquelon
country-PS = Palestinian Territories
country-SH = St. Helena
country-SJ = Svalbard & Jan Mayen
country-ST = São Tomé & Príncipe
country-TC = Turks & Caicos Islands
country-TT = Trinidad & Tobago
country-VC = St. Vincent & Grenadines
country-WF = Wallis & Futuna
