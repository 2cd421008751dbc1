// Lists where the browser got each object from.
window.addEventListener('load', function () {
  var rows = document.getElementById('trace');
  if (!rows) return;
  performance.getEntriesByType('resource').forEach(function (entry) {
    var url = new URL(entry.name);
    var own = /\.demo\.test$/.test(url.hostname);
    var row = rows.insertRow();
    row.insertCell().textContent = own ? url.pathname : url.pathname.replace(/^\/[^/]*/, '');
    row.insertCell().textContent = own ? url.hostname : url.pathname.split('/')[1];
    var place = row.insertCell();
    place.textContent = own ? 'its own host' : 'the proxy at ' + url.host;
    place.className = own ? 'ours' : 'proxy';
  });
});
