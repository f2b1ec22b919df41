# A worker of Delayed Job, for the tests of adapters.
#
# delayed_job.rb URL setup        makes the table, and puts a job into the queue
# delayed_job.rb URL work         works until it is ended, with a max_run_time of 10 s; says "working" when a job has begun
# delayed_job.rb URL type TEXT    runs TEXT, which locktop has said to type
require "uri"
require "logger"
require "active_record"
require "delayed_job_active_record"

url, what, text = ARGV
query = URI.decode_www_form(url.split("?").last).to_h
database = url[%r{@/([^?]*)}, 1]
ActiveRecord::Base.default_timezone = :utc
ActiveRecord::Base.establish_connection(
  adapter: "postgresql", username: "postgres", database: database, host: query["host"], port: query["port"]
)
Delayed::Worker.max_run_time = 10
Delayed::Worker.sleep_delay = 1
Delayed::Worker.logger = Logger.new(File::NULL)

Hang = Struct.new(:name) do
  def perform
    puts "working"
    $stdout.flush
    sleep 3600
  end
end

case what
when "setup"
  ActiveRecord::Migration.verbose = false
  ActiveRecord::Schema.define do
    create_table :delayed_jobs do |table|
      table.integer :priority, default: 0, null: false
      table.integer :attempts, default: 0, null: false
      table.text :handler, null: false
      table.text :last_error
      table.datetime :run_at
      table.datetime :locked_at
      table.datetime :failed_at
      table.string :locked_by
      table.string :queue
      table.timestamps null: true
    end
    add_index :delayed_jobs, %i[priority run_at], name: "delayed_jobs_priority"
  end
  Delayed::Job.enqueue(Hang.new("a"), queue: "mail")
when "work"
  Delayed::Worker.new.start
else
  eval(text) # rubocop:disable Security/Eval
end
