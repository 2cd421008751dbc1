package browsers

// Outcome is the result of a lookup that the memory has no response to. Each but Instant is a reason to wait for the truth.
type Outcome uint8

// The outcomes. The first ones need the configuration or the query, the next ones the name, and the last ones the table.
const (
	Instant Outcome = iota

	Client
	Except
	Down
	Validates

	SingleLabel
	NoHost
	Underscore
	LocalLabel
	SpecialUse
	NoSuffix
	PrivateSuffix

	Known
	Alone
	Full
	Outcomes // their number
)

// outcomes has the word of each outcome in metrics, and its meaning for a person.
var outcomes = [Outcomes]struct{ word, meaning string }{
	Instant: {"instant", "a browser's first lookup gets an address of the name's own, at once"},

	Client:    {"client", "the client is this host or the proxy, or in `bypass` or in the share of `compare`"},
	Except:    {"except", "the name is excepted"},
	Down:      {"down", "steering is paused, or no listener of the proxy responds"},
	Validates: {"validates", "the client may check signatures, or wants no recursion"},

	SingleLabel:   {"single_label", "the name has one label: it is a local one, or a probe for forged responses"},
	NoHost:        {"no_host", "the name has a character that names of hosts do not have"},
	Underscore:    {"underscore", "a label begins with an underscore: it names a service and no host"},
	LocalLabel:    {"local_label", "the first label is one that programs look for on the local network"},
	SpecialUse:    {"special_use", "the name is for special use, or the reverse of an address (RFC 6761)"},
	NoSuffix:      {"no_suffix", "the ending of the name is no public suffix, so the name is a local one"},
	PrivateSuffix: {"private_suffix", "names with this ending stand for private addresses"},

	Known: {"known", "the true response to the name was here before, or could not be had just now"},
	Alone: {"alone", "no browser asks: no A query and HTTPS query for the name came together"},
	Full:  {"full", "no address is free, or the client has its share of them"},
}

// String is the outcome's word in metrics.
func (o Outcome) String() string { return outcomes[o].word }

// Meaning says the outcome to a person.
func (o Outcome) Meaning() string { return outcomes[o].meaning }
