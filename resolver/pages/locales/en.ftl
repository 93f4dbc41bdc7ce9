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
sign-in = Sign in
sign-out = Sign out
to-home = To the home page

# Home
home-title = Make a short link
home-create = Shorten
home-options = Options
home-campaign = Campaign (added to the long URL)
home-sign-in = Sign in with an API key to create links here.
tags-example = news, autumn
created-title = Your short link
created-ends = It ends on { $value }.
created-another = Shorten another
created-manage = Edit this link
copy = Copy
copied = Copied
qr-code-of = QR code of { $value }
qr-code-download = QR code as a file
qr-code-format = Format
qr-code-size = Size in pixels
qr-code-colour = Colour
qr-code-background = Background
qr-code-show = Show

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
field-api-key = API key
expected-longUrl = The long URL has to be a complete address of another site, such as https://example.com/page.
expected-customSlug = The ending may have letters, digits and the signs - _ . ~ /, and must not be a page of this service.
expected-domain = The domain has to be a host name, such as go.example.com.
expected-shortCodeLength = There are no codes of this length.
expected-validSince = The start has to be a date and a time before the end.
expected-validUntil = The end has to be a date and a time after the start.
expected-maxVisits = The number of visits has to be 1 or more.
expected-password = The password may have at most 256 bytes, and no control characters.
expected-tags = There may be at most 100 tags of 255 bytes.
expected-title = The title must not contain unusual control characters.
expected-description = The description is too long.
expected-page = There is no such page of the list.

# Signing in
sign-in-title = Sign in
sign-in-text = Your API key opens these pages for twelve hours, or until you sign out.
sign-in-wrong = This key does not exist, was revoked or has expired.

# Management
search = Search
all = All
order = Order
order-newest = Newest first
order-oldest = Oldest first
order-visits = Most visited
order-title = Title
order-long-url = Long URL
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
state-live = Live
state-not-yet = Not yet
state-expired = Expired
state-disabled = Disabled
state-blocked = Taken down
state-deleted = Deleted
list-empty = There are no links yet.
list-no-match = No link matches.
trash-title = Trash
trash-empty = The trash is empty.
restore = Restore
undo = Undo
list-created-in = Created in
list-visits-in = Visits in
list-count = Links on a page
list-hide-ended = Hide ended links
list-deleted = { $value } is deleted.
list-visits-of = Statistics of { $value }
choose-all = Choose all links of this page
choose-link = Choose { $value }
chosen-title = With the chosen links
chosen-add-tag = Add tag
chosen-remove-tag = Remove tag
chosen-move = Move to domain
chosen-move-text = A link that moves keeps its ending. Its former address stops leading on.
chosen-enable = Enable
chosen-disable = Disable
chosen-done = { $count ->
    [one] { $shown } link is changed.
   *[other] { $shown } links are changed.
  }
chosen-failed = These links are not changed. They are still chosen:
chosen-expected-links = Choose links in the list first.
chosen-expected-domain = Choose the domain that the links move to.
chosen-expected-tag = Enter a tag.
chosen-expected-action = Press one of the buttons.
pages = Pages of the list
page-before = Previous
page-after = Next
page-of = Page { $first } of { $second }
link-created = Created on { $value }
edit-title = Edit
save = Save
stored = The changes are stored.
remove-password = Remove the password
delete = Delete
delete-text = The link stops leading on. It can be restored from the trash.
delete-link = Delete { $value }
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
error-superseded = The link was changed meanwhile.
error-blocked = The link was taken down by an operator.
error-exhausted = There are no codes of this length left.
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
unavailable-title = One moment
unavailable-text = This link cannot be looked up right now. Try again in a second.
too-much-title = Slow down
too-much-text = There were too many requests from here in a short time. Try again later.
slow-down-text = Too many short links that do not exist were asked for from here. Try again later.
preview-title = Where this link leads
preview-leads-to = It leads to:
preview-password = A password is needed to see where it leads.
preview-depends = Where it leads depends on who follows it, or how often it was followed.
preview-created = Created on { $value }
preview-follow = Follow the link

# Cluster
nav-cluster = Cluster
cluster-title = Cluster
cluster-leader = Leading issuer
cluster-no-leader = No issuer answers
cluster-epoch = Epoch
cluster-database = Database
cluster-answers = Answers
cluster-silent = Does not answer
cluster-supply = Numbers available to this process
cluster-keyspace = Keyspace
cluster-in-hand = In hand
cluster-lasts = Lasts for
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
cluster-burned = Burned
cluster-account = Account
cluster-balances = Balances
cluster-unbalanced = Does not balance
cluster-holders = Holders of blocks
cluster-holder = Holder
cluster-incarnation = Incarnation
cluster-blocks = Open blocks
cluster-reservation = Reservation
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
tags-no-match = No tag matches.
tags-rename = Rename
tags-rename-one = Rename { $value }
tags-new-name = New name of { $value }
tags-statistics = { $first }: statistics of { $second }
tags-delete-text = { $count ->
    [one] The tag is removed from { $shown } link, which stays.
   *[other] The tag is removed from { $shown } links, which stay.
  }
tags-expected = A tag has 1 to 255 bytes and no control characters.
tags-absent = There is no tag { $value } any more.
tags-taken = There is a tag { $value } already.
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
domains-tracked = Keep data about visitors
domains-remove = Remove
domains-remove-one = Remove { $value }
domains-remove-text = A domain can be removed once it has no links and no API key is limited to it. Deleted links of it can then not be restored.
domains-add = Add a domain
domains-add-text = Its DNS records have to lead to this service.
domains-expected-redirect = { $value }: expected an http or https address, with placeholders behind its host only.
domains-absent = There is no domain { $value }.
domains-taken = There is a domain { $value } already.
bulk-rows = Rows
bulk-text = One long URL on each line, or a table (CSV) whose first line names its columns. At most { $value } rows.
bulk-columns = Columns: { $value }. Several tags are separated by |, or by commas in quotation marks.
bulk-file = CSV file, which can also be dropped on the rows
bulk-file-wrong = The file is too long: expected at most 2 MiB.
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
bulk-wrong-domain = There is no domain { $value }, and your API key may not add one.
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
audit-changes = Before → after
audit-latest = Latest entries
audit-older = Older
audit-empty = There are no entries.
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
stats-others = Statistics of something else
stats-period = Period
stats-today = Today
stats-7-days = 7 days
stats-30-days = 30 days
stats-90-days = 90 days
stats-month = This month
stats-last-month = Last month
stats-year = This year
stats-all-time = All
stats-dates = These dates
stats-from = First day
stats-until = Last day
stats-without-bots = Without bots
stats-show = Show
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
stats-table = The numbers as a table
stats-time = From
stats-before = Period before
stats-empty = There were no visits in this period.
stats-rankings = Where visits came from
stats-value = Value
stats-share = Share
stats-countries = Countries
stats-regions = Regions
stats-cities = Cities
stats-referrers = Referrers
stats-browsers = Browsers
stats-systems = Operating systems
stats-devices = Devices
stats-languages = Languages
stats-outcomes = Outcomes
stats-rules = Redirect rules
stats-other = Others
stats-unknown = Unknown
stats-no-referrer = Without a referrer
stats-no-rule = Without a rule
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
stats-download = Download as CSV

# Target rules, reservations, sheets of QR codes
targets-title = Target rules
targets-count = { $count ->
    [one] { $shown } rule
   *[other] { $shown } rules
  }
targets-caption = Hosts that links may or must not lead to
targets-text = The longest pattern that matches a host decides. A host without a matching pattern is allowed, so only a rule that denies * turns the others into an allow-list. Links to a denied host stop redirecting within a second, until the rule is removed; unless this service applies rules to new links only.
targets-empty = There are no rules: links may lead to every host.
targets-pattern = Hosts
targets-verdict = Links to them
targets-allowed = Allowed
targets-denied = Denied
targets-remove = Remove
targets-remove-one = Remove the rule for { $value }
targets-remove-text = The next longest pattern then decides about these hosts. Without one they are allowed.
targets-add = Set a rule
targets-add-text = example.com is that host alone, *.example.com is every host below it, and * is every host. A pattern that has a rule already gets the new one.
targets-expected = The hosts have to be one such as example.com, *.example.com for all below it, or * for every host.
targets-absent = There is no rule for { $value }.
reservations-title = Reservations
reservations-count = { $count ->
    [one] { $shown } open reservation
   *[other] { $shown } open reservations
  }
reservations-open = Open reservations
reservations-caption = Open reservations, the latest first
reservations-text = Reserved codes can be printed before their links exist. No other link gets one of them until the reservation is given up. Programs store the links with the API.
reservations-empty = There are no open reservations.
reservations-id = Reservation
reservations-keyspace = Keyspace
reservations-codes = Codes
reservations-own-key = This one
reservations-other-key = Another one
reservations-elsewhere = Only used by other processes
reservations-give-up = Give up
reservations-give-up-one = Give up { $value }
reservations-give-up-text = Links that were stored under its codes stay. Codes without a link may then be given to other links.
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
reservations-download = Download as CSV
reservations-expected-count = The number of codes has to be between 1 and { $value }.
reservations-expected-keyspace = There is no such keyspace on this server.
reservations-absent = There is no reservation { $value }, or your API key does not see it.
reservations-too-many = Give up a reservation first: { $first } of { $second } reservations of your API key are open.
reservations-too-many-codes = Reserve fewer codes, or give up a reservation first: { $first } of { $second } codes of your API key are reserved.
reservations-exhausted = The keyspace does not have that many codes left.
sheet-link = QR codes of these links
sheet-title = QR codes
sheet-text = Print this page: three codes stand side by side on paper.
sheet-to-list = To the list

# Redirect rules
rules-title = Redirect rules
rules-of-link = Redirect rules of { $value }
rules-list = Rules in the order in which they are tried
rules-text = The first rule whose conditions all hold decides where a visitor is led. If there is none, it is the long URL of the link:
rules-empty = There are no rules: every visitor is led to the long URL.
rules-rule = Rule { $value }
rules-rule-condition = Rule { $first }, condition { $second }
rules-every-visitor = Every visitor
rules-denied = The target rules of this service deny this address. Visitors who match are told that the link was taken down. Delete the rule before you change others.
rules-up = Up
rules-up-one = Move rule { $value } up
rules-down = Down
rules-down-one = Move rule { $value } down
rules-delete-one = Delete rule { $value }
rules-delete-all = Delete all rules
rules-delete-all-text = Every visitor is then led to the long URL of the link.
rules-conditions-of = Conditions of rule { $value }
rules-delete-condition = Delete condition { $first } of rule { $second }
rules-add-condition = Add a condition
rules-add-condition-to = Add a condition to rule { $value }
rules-add = Add a rule
rules-add-text = The rule is tried after the others.
rules-full = A link may have at most { $value } rules.
rules-conditions-full = A rule may have at most { $value } conditions.
rules-type = Condition
rules-choose = Choose a condition
rules-key = Name of the query parameter
rules-value = Value
rules-values = Devices: { $first }. Browsers: { $second }. A language is written as en or en-US, a country as DE. An IP address may also be a network such as 192.0.2.0/24, or a pattern such as 192.0.*.7.
rules-limits = A time is written as 2030-12-31 18:00 and is in the zone { $first }; a date alone begins at midnight UTC. A rule may have { $second } conditions, which all have to hold.
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
rules-wrong = { $first }: { $second }
rules-superseded = The link was changed meanwhile, so nothing is stored. These are its present rules.
rules-others = More fields are wrong.
rules-expected-allowed = The target rules of this service deny this address.
rules-expected-other = A rule must not lead to the short link itself.
rules-expected-type = Choose a condition.
rules-expected-key = The name of a query parameter has 1 to 255 bytes.
rules-expected-value = A value has 1 to 255 bytes.
rules-expected-device = The device has to be one of { $value }.
rules-expected-browser = The browser has to be one of { $value }.
rules-expected-address = The value has to be an IP address, a network such as 192.0.2.0/24, or a pattern such as 192.0.*.7.
rules-expected-country = The country has to be two capital letters of ISO 3166-1, such as DE.
rules-expected-date = The time has to be written as 2030-12-31 or 2030-12-31 18:00.
rules-example = What would happen
rules-example-text = Describe a visit; the form begins with your own, now. Country and city are not looked up from the IP address. The link's password and number of visits are left out.
rules-browser = Browser
rules-browser-own = This browser
rules-browser-none = No user agent
rules-user-agent = Or this user agent
rules-language = Languages (Accept-Language)
rules-country = Country
rules-city = City
rules-ip = IP address
rules-query = Query of the short URL
rules-time = Time, if not now
rules-try = Try
rules-match = Rule { $value } matches and leads to
rules-no-match = No rule matches. The link leads to
rules-match-denied = The target rules of this service deny this address: the visitor is told that the link was taken down.
rules-match-not-live = The link does not redirect at this time, whatever its rules are.
rules-wrong-ip = The IP address has to be written as 192.0.2.7 or 2001:db8::7.
rules-wrong-time = The time has to be a date and a time.
restore-link = Restore { $value }
error-no-domain = There is no domain { $value }, and your API key may not add it.
error-no-tag = There is no tag { $value }.
error-domain-in-use = The domain { $value } has links or keys, and cannot be removed.
cluster-with-holders = With holders
